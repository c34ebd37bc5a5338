"""The State of `Auto` in a cohort: that of a unit, and what all units share."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl.policies.auto.policy import AutoState
from larl.policies.auto.soa import Floats
from larl.policies.auto.state import PopulationPriors, SMCState

SPREAD_SHARE = 0.1  # expected share of S in the prior variance of a coordinate
SAME_SIGN = np.array([0.01, 0.25, 0.5, 0.75, 0.99])  # candidates for the share of units whose arms have the same sign


class UnitSums(NamedTuple):
    """What one unit reports to the others, or the sum over units; without a report, 0."""

    units: Floats  # (1,)
    information: Floats  # (coordinates, coordinates) (Λ⁻¹ + S)⁻¹
    shift: Floats  # (coordinates,) the same times an estimate of θ
    square: Floats  # (coordinates,) E (θ − m)²
    same_sign: Floats  # (arms, len(SAME_SIGN)) log-likelihood of the sign of β relative to that of the first arm


class PopulationLayer(NamedTuple):
    """What the units share. The arrays that are priors have the axes of `PopulationPriors`."""

    sums: UnitSums
    mean: Floats  # prior of the unit that learnt last; of other populations, constants
    factor: Floats
    precision: Floats
    sign_log_odds: Floats
    log_weight: Floats
    centre: Floats  # (coordinates,) m
    centre_covariance: Floats  # (coordinates, coordinates) V
    spread: Floats  # (coordinates,) diagonal of S
    started: NDArray[np.int64]  # (1,) number of units that have learnt from a reward


class PooledAutoState(NamedTuple):
    auto: AutoState
    layer: PopulationLayer
    report: UnitSums
    information: Floats  # (coordinates, coordinates) Λ
    estimate: Floats  # (coordinates,) h
    mode: Floats  # (coordinates,) the unit's θ, given m, S and its rewards; its log-likelihood is expanded there
    sign_gain: Floats  # (arms,) log-likelihood ratio of the same over the other sign as that of the first arm
    next_report: NDArray[np.int64]  # (1,) number of rewards with which the unit learns from the others, and reports
    sign_log_odds: Floats  # (arms,) in the unit's prior
    log_share: Floats  # (1,) of the population in the unit's prior


@inline
def with_layer(state: PooledAutoState) -> SMCState:
    """Return the unit's sampler with the priors of the layer."""
    smc, layer = state.auto.smc, state.layer
    priors = PopulationPriors(
        layer.log_weight,
        layer.mean,
        layer.factor,
        layer.precision,
        smc.priors.level,
        layer.sign_log_odds,
        smc.priors.errors,
        smc.priors.shock_variance,
        smc.priors.is_permanent,
    )
    return SMCState(
        smc.data,
        smc.populations,
        priors,
        smc.history,
        smc.draws,
        smc.rewards,
        smc.values,
        smc.offset,
        smc.time,
        smc.seen,
        smc.next_restart,
        smc.review,
        smc.relearnt,
        smc.context,
        smc.arms,
    )
