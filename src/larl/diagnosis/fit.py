"""Fit the latent AR bandit of every order k = 0 … 10 to a log: maximum a posteriori, and the evidence of each order."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.model import Model
from larl.diagnosis.short_repr import short_repr
from larl.diagnosis.subsample import subsample

ORDERS = tuple(range(11))
TICKS = len(ORDERS[1:]) + len(ORDERS[-2:0:-1])  # of `fit_orders`: every order but 0 upwards, then downwards
MIN_GAIN = 2e-3  # of the log-posterior; scoring stops at a step that gains less
MAX_STEPS, TRIAL_STEPS = 40, 5  # scoring steps of a fit, and from each initial guess
RANDOM_GUESSES, MANY_ARMS = 4, 8  # random guesses per order; one if there are many arms
TRIAL_ROWS = 400  # rows on which initial guesses are compared
PROPOSALS_PER_DRAW, PROPOSAL_DF = 10, 7.0


class Fit(NamedTuple):
    """A model at the mode of its posterior."""

    model: Model
    theta: Floats
    log_posterior: float
    information: Floats

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def log_evidence(self) -> float:
        """Laplace approximation of log ∫ likelihood × prior. β and −β are two equal modes."""
        logdet = float(np.linalg.slogdet(self.information)[1])
        modes = math.log(2.0) if self.model.order else 0.0
        return self.log_posterior + 0.5 * (self.theta.size * math.log(2.0 * math.pi) - logdet) + modes

    def draws(self, count: int, generator: np.random.Generator) -> Floats:
        """Return draws from the posterior, (count, coordinates), by sampling-importance-resampling.

        The proposal is a multivariate t distribution around the mode with the information as its precision. Weights are
        truncated at their mean times the square root of their number (Ionides 2008).
        """
        size, proposals = self.theta.size, PROPOSALS_PER_DRAW * count
        normal, chi = (
            generator.normal(size=(size, proposals)),
            generator.chisquare(PROPOSAL_DF, proposals) / PROPOSAL_DF,
        )
        offset = np.linalg.solve(np.linalg.cholesky(self.information).T, normal / np.sqrt(chi)).T
        proposed = self.theta + offset
        distance = np.einsum("ni,ij,nj->n", offset, self.information, offset)
        log_proposal = -0.5 * (PROPOSAL_DF + size) * np.log1p(distance / PROPOSAL_DF)
        with np.errstate(all="ignore"):  # a proposal far from the mode may overflow; its weight is 0
            log_weights = self.model.log_posteriors(proposed) - log_proposal
            log_weights = np.nan_to_num(log_weights, nan=-np.inf, posinf=-np.inf)
        weights = np.exp(log_weights - log_weights.max())
        weights = np.minimum(weights, weights.mean() * math.sqrt(proposals))
        chosen: Floats = proposed[generator.choice(proposals, count, p=weights / weights.sum())]
        return chosen


def fisher_scoring(model: Model, theta: Floats, steps: int = MAX_STEPS) -> Fit:
    """Return the nearest mode of the posterior, by Fisher scoring with Levenberg damping, in at most `steps` steps."""
    value, damping = model.log_posterior(theta), 1e-2
    gradient, information = model.gradient_and_information(theta)
    for _ in range(steps):
        step = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)
        trial = theta + np.clip(step, -2.0, 2.0)
        trial_value = model.log_posterior(trial)
        if math.isfinite(trial_value) and trial_value > value:
            gain, theta, value, damping = trial_value - value, trial, trial_value, damping / 5.0
            gradient, information = model.gradient_and_information(theta)
            if gain < MIN_GAIN:
                break
        else:
            damping *= 8.0
            if damping > 1e6 or float(gradient @ step) < MIN_GAIN:
                break
    return Fit(model, theta, value, information)


def fit_from_guesses(model: Model, guesses: list[Floats]) -> Fit:
    """Take a few scoring steps from every guess; return the mode that the best of them leads to."""
    trials = [fisher_scoring(model, theta, TRIAL_STEPS) for theta in guesses]
    return fisher_scoring(model, max(trials, key=lambda fit: fit.log_posterior).theta)


def burg(series: Floats, order: int) -> Floats:
    """Return partial autocorrelations 1 … order by Burg's recursion. They are always those of a stable process."""
    forward, backward, partials = series[1:], series[:-1], np.zeros(order)
    for j in range(order):
        power = float(forward @ forward + backward @ backward)
        if forward.size < 2 or power <= 0.0:
            break
        partials[j] = 2.0 * float(forward @ backward) / power
        forward, backward = (forward - partials[j] * backward)[1:], (backward - partials[j] * forward)[:-1]
    return partials


def initial_guesses(model: Model, direction: Floats, generator: np.random.Generator) -> list[Floats]:
    """Return points at which a fit may begin, with β along `direction`.

    The AR process is the one that Burg's recursion finds in the rewards, or drawn from the prior; for order 1 also
    persistent, weakly persistent and alternating. Half of the guesses have a large start variance.
    """
    theta = model.prior[0].copy()
    if not model.order:
        return [theta]
    weight = direction.mean() or 0.5 if model.tied else direction
    theta[model.slices["beta"]] = 0.7 * weight
    log, scale = model.log, np.broadcast_to(direction, model.centre.shape) / model.reward_spread
    burg_partials = burg((log.reward - model.reward_centre[log.arm]) * scale[log.arm], model.order)
    count = RANDOM_GUESSES if log.arms <= MANY_ARMS else 1
    partials = generator.normal(size=(count, model.order)) * model.prior[1][: model.order]
    partials = np.concatenate([np.tile(np.arctanh(0.99 * burg_partials), (2, 1)), partials])
    if model.order == 1:
        partials = np.concatenate([partials, [[1.2], [0.3], [-0.8]]])
    guesses = [np.concatenate([x, theta[model.order :]]) for x in partials]
    for guess in guesses[::2]:
        guess[model.slices["start"]] = 1.5
    return guesses


def embed(fit: Fit, order: int) -> Floats:
    """Return a fit's coordinates in the model of another order: partial autocorrelations truncated or padded with 0."""
    old = fit.model.order
    partials = np.zeros(order)
    partials[: min(old, order)] = fit.theta[: min(old, order)]
    return np.concatenate([partials, fit.theta[old:]])


def fit_orders(
    log: Log, direction: Floats, tick: Callable[[], None] = lambda: None, model_class: type[Model] = Model
) -> list[Fit]:
    """Return the best fit of every order 0 … 10.

    The posterior has many modes, and nested models must agree on theirs. So guesses are compared on a few hundred rows.
    Then each order starts at the best guess or at the fit of the order below, and again at the fit of the order above.
    """
    generator, few = np.random.default_rng(0), subsample(log, TRIAL_ROWS)
    fits, trial_fits = ([fisher_scoring(each, each.prior[0])] for each in (model_class(log, 0), model_class(few, 0)))
    for order in ORDERS[1:]:
        small, model = model_class(few, order), model_class(log, order)
        guesses = [*initial_guesses(small, direction, generator)] + [embed(trial_fits[-1], order)] * (order > 1)
        trial_fits.append(fit_from_guesses(small, guesses))
        if few is log:
            fits.append(trial_fits[-1])
        else:
            from_trial = trial_fits[-1].theta
            from_below = embed(fits[-1], order) if order > 1 else from_trial
            fits.append(fisher_scoring(model, max(from_trial, from_below, key=model.log_posterior)))
        tick()
    for order in ORDERS[-2:0:-1]:
        again = fisher_scoring(fits[order].model, embed(fits[order + 1], order))
        fits[order] = max(fits[order], again, key=lambda fit: fit.log_posterior)
        tick()
    return [refine(fit) for fit in fits]


def refine(fit: Fit) -> Fit:
    """Return a fit with the precision of its model in place of the information that scoring used."""
    return fit._replace(information=fit.model.precision(fit.theta, fit.information))


def fit_tied(fit: Fit, direction: Floats) -> Fit:
    """Return the fit of the same order with one β for all arms."""
    model = type(fit.model)(fit.model.log, fit.model.order, tied=True)
    return fit_from_guesses(model, initial_guesses(model, direction, np.random.default_rng(0)))
