"""Auto in a cohort: one of its populations has a prior that all units estimate together (population_layer.py).

From time to time a unit replaces the prior of that population by N(m, V + S), as the other units have it by then. Its
particles are not drawn again: their weights are multiplied by the ratio of the new to the old prior, and the moves
replay the unit's rewards as usual. Only if few particles would keep a weight, they are drawn from the new prior and
learn from all rewards again.

Without other units the population has no influence; with n others it has n/(n + 1) of half of the prior weight. With
binary rewards it has none, and units report nothing.
"""

import math

import numpy as np

from larl._core.compile import implement, inline, inner
from larl._core.random import Bits, bits_to_uniform
from larl.policies._allocation import posterior
from larl.policies._bounds import STEPS, Bound, inner_bounds
from larl.policies._contract import act, action_probabilities, predict
from larl.policies._linalg.cholesky import cholesky
from larl.policies._probabilities import Mask
from larl.policies._registry import bind
from larl.policies.auto.layout import BINARY, CONTINUOUS, STATIONARY_AR, FieldOffsets, ModelKind, field_offsets
from larl.policies.auto.learning import smc_update, smc_update_missing
from larl.policies.auto.moves import next_bits
from larl.policies.auto.parameters import prior_of
from larl.policies.auto.policy import AutoState
from larl.policies.auto.pooled_state import (
    SAME_SIGN,
    SPREAD_SHARE,
    PooledAutoState,
    PopulationLayer,
    UnitSums,
    with_layer,
)
from larl.policies.auto.population_layer import estimate_population, invert, report_unit, same_sign_odds
from larl.policies.auto.populations import begin_population, blocks_of, model_of
from larl.policies.auto.prior import PriorComponent
from larl.policies.auto.proposal import GaussianPrior, log_prior
from larl.policies.auto.resampling import systematic_resample
from larl.policies.auto.scoring import score_arms
from larl.policies.auto.smc import REPLAY_BUDGET, largest_reward, learn_steps
from larl.policies.auto.soa import LANES, Floats, aligned_rows, broadcast, exp, load, store, sum_lanes
from larl.policies.auto.state import MIN_MOVES, SMCState, smc_init

ORDER = 10  # of the population that units share: long lags stay near 0 unless the units show otherwise
FIRST_PARTIAL_SD, PARTIAL_SD = 0.8, 0.5  # prior sd of ψ_1, and √j times that of ψ_j
DEFAULT_MODELS = 3  # populations of Auto before those of the AR orders
LOG_NO_SHARE = -50.0  # log share of the population without other units
REPORT_GROWTH = 1.15  # factor of the number of a unit's rewards between two reports
RESAMPLE_BELOW, REDRAW_BELOW = 0.5, 0.3  # effective shares of particles under a new prior: resample or draw again below


def bounds(initial: PooledAutoState, state: PooledAutoState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    own = {"layer.started": (0, 2**31), "next_report": STEPS}
    return inner_bounds(initial.auto, state.auto, "auto") | own


def empty_sums(size: int, arms: int) -> UnitSums:
    """Return sums over no unit."""
    return UnitSums(
        np.zeros(1), np.zeros((size, size)), np.zeros(size), np.zeros(size), np.zeros((arms, SAME_SIGN.size))
    )


def pooled_component(arms: int, rewards: int) -> PriorComponent:
    """Return the prior of the shared population before any unit has learnt."""
    prior = list(prior_of(ModelKind(arms, ORDER, STATIONARY_AR, rewards)).coordinates)
    sds = [FIRST_PARTIAL_SD] + [PARTIAL_SD / math.sqrt(j) for j in range(2, ORDER + 1)]
    prior[:ORDER] = [(mean, sd) for (mean, _), sd in zip(prior[:ORDER], sds, strict=True)]
    sd = np.array([each[1] for each in prior])
    return PriorComponent(
        order=ORDER,
        weight=1.0,
        mean=tuple(each[0] for each in prior),
        mean_covariance=tuple(map(tuple, np.diag((1.0 - SPREAD_SHARE) * sd * sd))),
        spread=tuple(math.sqrt(SPREAD_SHARE) * sd),
        level=(0.0,) * arms,
        same_sign=(0.5,) * arms,
        errors=0.0,
        shock_sd=0.0,
    )


def pooled_auto_state(auto: AutoState) -> PooledAutoState:
    """Return the State of a unit of a cohort before the first reward of any unit, given that of a unit alone."""
    arms, pops = auto.smc.arms, auto.smc.populations
    orders = tuple(int(p) for p in pops.order[DEFAULT_MODELS:])
    learnt = {model: [pooled_component(arms, model)] for model in (CONTINUOUS, BINARY)}
    particles, memory = LANES * int(pops.blocks[-1]), auto.smc.history.arm.size // 2
    smc = smc_init(arms, orders, particles, memory, int(auto.smc.rewards[1]), 0, learnt)
    priors = smc.priors
    priors.is_permanent[-1] = True
    size = ORDER + arms + 4
    variance = np.diagonal(priors.factor[CONTINUOUS, -1])[:size] ** 2
    layer = PopulationLayer(
        sums=empty_sums(size, arms),
        mean=priors.mean.copy(),
        factor=priors.factor.copy(),
        precision=priors.precision.copy(),
        sign_log_odds=priors.sign_log_odds.copy(),
        log_weight=priors.log_weight.copy(),
        centre=priors.mean[CONTINUOUS, -1, :size].copy(),
        centre_covariance=np.diag((1.0 - SPREAD_SHARE) * variance),
        spread=SPREAD_SHARE * variance,
        started=np.zeros(1, dtype=np.int64),
    )
    layer.log_weight[:, -1] += LOG_NO_SHARE
    return PooledAutoState(
        auto=AutoState(smc, np.zeros(arms), np.zeros(arms), auto.alpha),
        layer=layer,
        report=empty_sums(size, arms),
        information=np.zeros((size, size)),
        estimate=np.zeros(size),
        mode=priors.mean[CONTINUOUS, -1, :size].copy(),
        sign_gain=np.zeros(arms),
        next_report=np.ones(1, dtype=np.int64),
        sign_log_odds=np.zeros(arms),
        log_share=np.full(1, LOG_NO_SHARE),
    )


@inner
def set_log_ratios(
    x: Floats,
    fields: FieldOffsets,
    new: GaussianPrior,
    old: GaussianPrior,
    odds: Floats,
    old_odds: Floats,
    constant: float,
) -> float:
    """Write the log ratio of a new to an old prior into row tmp1 of each block; return the effective share after it."""
    d, top = new.mean.size, -math.inf
    rows = aligned_rows(d)
    for row in range(0, x.shape[0], fields.end):
        theta = row + fields.theta
        total = broadcast(constant) + log_prior(x, theta, d, new, rows) - log_prior(x, theta, d, old, rows)
        for arm in range(1, odds.size):
            same = load(x, row + fields.sign) * load(x, row + fields.sign + arm)
            total += broadcast(0.5 * (odds[arm] - old_odds[arm])) * same
        store(x, row + fields.tmp1, total)
        for lane in range(LANES):
            top = max(top, x[row + fields.tmp1, lane] + x[row + fields.log_weight, lane])
    weights, squares = broadcast(0.0), broadcast(0.0)
    for row in range(0, x.shape[0], fields.end):
        weight = exp(load(x, row + fields.tmp1) + load(x, row + fields.log_weight) - broadcast(top))
        weights += weight
        squares += weight * weight
    total_weight = sum_lanes(weights)
    return total_weight * total_weight * fields.end / (sum_lanes(squares) * x.shape[0] * LANES)


@inline
def sign_constant(odds: float) -> float:
    """Return log P(same sign) − ½ log odds, which is also log P(other sign) + ½ log odds."""
    return -math.log1p(math.exp(-abs(odds))) - 0.5 * abs(odds)


@inner
def adopt_prior(state: PooledAutoState) -> None:
    """Replace the unit's prior of the shared population by the present one."""
    smc, layer = state.auto.smc, state.layer
    pops, last, arms, d = smc.populations, layer.mean.shape[1] - 1, smc.arms, layer.centre.size
    precision, odds, old_odds = np.zeros((d, d)), np.zeros(arms), state.sign_log_odds.copy()
    n = estimate_population(state, precision)
    constant, change = -0.5 * invert(precision, d), -state.log_share[0]
    for arm in range(1, arms):
        odds[arm] = same_sign_odds(state, arm)
        constant += sign_constant(odds[arm]) - sign_constant(old_odds[arm])
    set_layer_prior(state, precision, odds, math.log(n / (n + 1.0)) if n > 0.5 else LOG_NO_SHARE)
    change += state.log_share[0]
    is_current = smc.rewards[0] == CONTINUOUS and smc.seen[0] > 0 and pops.alive[last]
    if not is_current or pops.first[last] > pops.born[last]:
        return
    fields = field_offsets(model_of(smc, last))
    x, factor = blocks_of(smc, last, fields), np.zeros((d, d))
    old = GaussianPrior(np.zeros(d), np.zeros((d, d)))
    for i in range(d):
        old.mean[i] = pops.mean[last, i]
        for j in range(d):
            old.precision[i, j] = factor[i, j] = pops.precision[last, i, j]
    constant -= 0.5 * cholesky(factor, d)
    share = set_log_ratios(x, fields, GaussianPrior(layer.centre, precision), old, odds, old_odds, constant)
    if not share >= REDRAW_BELOW:
        live = with_layer(state)
        begin_population(live, last, pops.born[last], layer.log_weight[CONTINUOUS, last], 0.0, 0.0)
        largest = largest_reward(smc.history, smc.time[0])
        learn_steps(live, last, smc.time[0] - 1, largest, REPLAY_BUDGET)
        return
    add_log_ratios(smc, last, x, fields, change)
    for i in range(d):
        pops.mean[last, i] = layer.centre[i]
        for j in range(d):
            pops.precision[last, i, j] = precision[i, j]
    if share < RESAMPLE_BELOW:
        systematic_resample(x, fields, pops.evidence[last], bits_to_uniform(next_bits(smc.draws)))
        pops.moves_due[last] = max(pops.moves_due[last], MIN_MOVES)


@inner
def set_layer_prior(state: PooledAutoState, precision: Floats, odds: Floats, log_share: float) -> None:
    """Set the prior from which the shared population of this unit starts, if it starts in this step."""
    layer, d = state.layer, state.layer.centre.size
    last, factor = layer.mean.shape[1] - 1, precision.copy()
    invert(factor, d)
    cholesky(factor, d)
    for i in range(d):
        layer.mean[CONTINUOUS, last, i] = layer.centre[i]
        for j in range(d):
            layer.precision[CONTINUOUS, last, i, j] = precision[i, j]
            layer.factor[CONTINUOUS, last, i, j] = factor[i, j] if j <= i else 0.0
    for arm in range(odds.size):
        layer.sign_log_odds[CONTINUOUS, last, arm] = odds[arm]
        state.sign_log_odds[arm] = odds[arm]
    layer.log_weight[CONTINUOUS, last] = state.auto.smc.priors.log_weight[CONTINUOUS, last] + log_share
    state.log_share[0] = log_share


@inner
def add_log_ratios(smc: SMCState, population: int, x: Floats, fields: FieldOffsets, change: float) -> None:
    """Add row tmp1 and a constant to the log weights, and set the evidence."""
    top, total = -math.inf, 0.0
    for row in range(0, x.shape[0], fields.end):
        weight = load(x, row + fields.log_weight) + load(x, row + fields.tmp1) + broadcast(change)
        store(x, row + fields.log_weight, weight)
        for lane in range(LANES):
            top = max(top, x[row + fields.log_weight, lane])
    for row in range(0, x.shape[0], fields.end):
        total += sum_lanes(exp(load(x, row + fields.log_weight) - broadcast(top)))
    smc.populations.evidence[population] = top + math.log(total)


def pooled_update(state: PooledAutoState, arm: int, reward: float) -> None:
    smc = with_layer(state)
    if smc.seen[0] == 0:  # units need different particles
        smc.draws[0] = np.uint64(state.layer.started[0]) << np.uint64(32)
        state.layer.started[0] += 1
    is_due = smc.seen[0] + 1 >= state.next_report[0]
    # As long as all rewards are binary, the next one can begin the populations of continuous rewards, from this prior.
    if is_due or smc.rewards[0] != CONTINUOUS:
        adopt_prior(state)
    smc_update(smc, arm, reward)
    score_arms(smc, state.auto.alpha, state.auto.mean, state.auto.score)
    if is_due:
        state.next_report[0] = max(smc.seen[0] + 1, np.int64(REPORT_GROWTH * smc.seen[0]))
        report_unit(state)


def pooled_update_missing(state: PooledAutoState, arm: int) -> None:
    smc = with_layer(state)
    if smc.seen[0] > 0:
        smc_update_missing(smc)
        score_arms(smc, state.auto.alpha, state.auto.mean, state.auto.score)


def pooled_act(state: PooledAutoState, bits: Bits) -> int:
    return act(state.auto, bits)


def pooled_predict(state: PooledAutoState, arm: int) -> tuple[float, float]:
    return predict(state.auto, arm)


def pooled_action_probabilities(state: PooledAutoState, available: Mask, out: Floats) -> None:
    action_probabilities(state.auto, available, out)


def pooled_posterior(state: PooledAutoState, arm: int) -> tuple[float, float]:
    """Return the posterior of Auto."""
    return posterior(state.auto, arm)


implement(posterior, PooledAutoState, pooled_posterior)
bind(
    PooledAutoState,
    pooled_act,
    pooled_update,
    "CohortAuto",
    ("layer",),
    bounds,
    update_missing=pooled_update_missing,
    predict=pooled_predict,
    action_probabilities=pooled_action_probabilities,
    checked=("auto",),
)
