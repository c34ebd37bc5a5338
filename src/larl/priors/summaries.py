"""What the fit of a prior says about each unit."""

import numpy as np

from larl import theory
from larl.diagnosis.fitted_worlds import FittedWorld
from larl.policies.auto.layout import BINARY
from larl.policies.auto.prior import UnitSummary
from larl.priors.population import ModelFit
from larl.priors.units import Floats, Unit
from larl.statespace.durbin_levinson import ar_from_partial_autocorrelations

MIN_SCALE, MAX_SCALE = 1e-95, 1e95  # of the sd of a latent shock
MAX_PARTIAL = 1.0 - 1e-6


def ar_process(psi: Floats) -> tuple[Floats, Floats]:
    """Return the AR coefficients and the autocorrelations at lags 0 … p, from atanh of the partial autocorrelations."""
    gammas, autocorrelations = np.zeros(psi.size), np.zeros(psi.size + 1)
    partials = np.clip(np.tanh(psi), -MAX_PARTIAL, MAX_PARTIAL)
    ar_from_partial_autocorrelations(partials, gammas, autocorrelations)
    return gammas, autocorrelations


def unit_world(fit: ModelFit, i: int) -> FittedWorld:
    """Return the world with the fitted parameters of a unit and the expected levels of its population."""
    theta, p, arms = fit.units[i], fit.kind.p, fit.kind.arms
    scale = float(np.clip(np.sqrt(fit.shock_variance[i]), MIN_SCALE, MAX_SCALE))
    beta, share = theta[p : p + arms], 1.0 / (1.0 + np.exp(-theta[p + arms + 1]))
    noise = np.exp(min(theta[p + arms], 50.0)) * (share * beta**2 + 1.0 - share)
    return FittedWorld(
        gammas=ar_process(theta[:p])[0].tolist(),
        beta=(fit.signs[i] * beta * scale).tolist(),
        mu=fit.level.tolist(),
        noise="common",
        start="stationary",
        noises=np.maximum(np.sqrt(noise) * scale, 1e-9 * scale).tolist(),
    )


def summarise_units(units: list[Unit], fit: ModelFit) -> tuple[UnitSummary, ...]:
    """Return a summary of each unit under one model."""
    found = []
    for i, unit in enumerate(units):
        correlation = float(ar_process(fit.units[i][: fit.kind.p])[1][1])
        if fit.kind.rewards == BINARY:
            found.append(UnitSummary(unit.name, unit.rewards, correlation))
        else:
            world = unit_world(fit, i)
            random, floor = theory.random_regret(world), theory.regret_lower_bound(world)
            found.append(UnitSummary(unit.name, unit.rewards, correlation, max(random, 0.0), max(floor, 0.0)))
    return tuple(found)
