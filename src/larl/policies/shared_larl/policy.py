"""SharedLARL: LARL whose arms share one latent state, which Lemma 2 does not use (docs/theory.md, section 10)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._bounds import MAX_STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Mask, argmax_probabilities, uniform_probabilities
from larl.policies._registry import register
from larl.policies.shared_larl.model import (
    Floats,
    Modes,
    Prior,
    RewardWindow,
    Work,
    arm_offset,
    marginalise_row,
    mean_log_scale,
    write_readings,
)
from larl.policies.shared_larl.modes import best_mode, copy_mode, optimise, predict_arm, try_sign_flip

DORMANT_GAP = 10.0  # a mode this far below the best log evidence is dormant
DORMANT_EVERY = 16  # steps between updates of a dormant mode
RESCALE_FACTOR = 2.0**20  # a reward larger than this multiple of the scale resets the scale


class SharedLARLState(NamedTuple):
    window: RewardWindow
    prior: Prior
    modes: Modes  # the last one is scratch for `try_sign_flip`
    work: Work
    arm_slot: NDArray[np.int64]  # (arms,) position of each arm in the order of first plays, −1 before the first play
    marginalised: Floats  # (arms,) number of rows of each slot that left the window
    offset_scale: Floats  # (2,) the first reward, and the power of two that rewards are divided by (0 until two differ)
    time: NDArray[np.int64]  # (2,) steps so far, modes in use
    mean: Floats  # (arms,) predicted mean, in units of the scale
    score: Floats  # (arms,) upper confidence bound that `act` maximises
    alpha: float
    effort: int  # rows that the Gauss–Newton steps of one mode may process per reward


def bounds(initial: SharedLARLState, state: SharedLARLState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers; every slot below the number of arms played belongs to one arm."""
    slots, s = initial.arm_slot.size, initial.prior.precision.size
    order = np.argsort(np.where(state.arm_slot < 0, slots, state.arm_slot), kind="stable")
    played, arm_slot = int((state.arm_slot >= 0).sum()), np.full(slots, -1)
    arm_slot[order[:played]] = np.arange(played)
    return {
        "window.slot": (-1, slots - 1),
        "window.size": ([0, 0, played], [initial.window.slot.size, s, played]),
        "arm_slot": (arm_slot, arm_slot),
        "time": ([0, 1], [MAX_STEPS, initial.modes.sign.shape[0] - 1]),
    }


@inner
def _reset_scale(state: SharedLARLState, value: float) -> None:
    """Set the scale to the power of two above |value| and restart every mode."""
    window, modes, s = state.window, state.modes, state.prior.precision.size
    fraction, exponent = math.frexp(abs(value))
    before, state.offset_scale[1] = state.offset_scale[1], math.ldexp(1.0, exponent)
    state.prior.log_scale[0] = math.log(fraction)
    for i in range(window.size[0]):
        window.value[i] *= before / state.offset_scale[1]
    for k in range(state.time[1]):
        modes.marginal_loss[k] = 0.0
        for p in range(modes.theta.shape[1]):
            modes.theta[k, p] = modes.marginal_gradient[k, p] = modes.marginal_centre[k, p] = 0.0
            for q in range(modes.theta.shape[1]):
                modes.marginal_curvature[k, p, q] = 0.0
        for a in range(window.size[2]):
            modes.theta[k, arm_offset(s, a) + 1] = state.prior.log_scale[0]


@inner
def _add_arm(state: SharedLARLState, arm: int, value: float) -> None:
    """Add an arm that is played for the first time, with both signs while there are free modes."""
    window, modes, s = state.window, state.modes, state.prior.precision.size
    slot, used = window.size[2], state.time[1]
    state.arm_slot[arm] = slot
    for k in range(used):
        modes.theta[k, arm_offset(s, slot)] = value
        modes.theta[k, arm_offset(s, slot) + 1] = (
            mean_log_scale(modes.theta[k], slot, s) if slot > 0 else state.prior.log_scale[0]
        )
        modes.sign[k, slot] = 1.0
    window.size[2] += 1
    if slot > 0:
        for k in range(used):
            if state.time[1] < modes.sign.shape[0] - 1:
                copy_mode(modes, k, state.time[1])
                modes.sign[state.time[1], slot] = -1.0
                state.time[1] += 1


@inner
def _append_entry(state: SharedLARLState, slot: int, value: float) -> None:
    """Append an entry (slot −1: missing reward); if the window is full, its oldest row leaves."""
    window, s = state.window, state.prior.precision.size
    if window.size[0] == window.slot.size:
        for i in range(window.size[1], s + 1):  # the first time, all rows with fewer than s lags leave too
            if window.slot[i] >= 0:
                state.marginalised[window.slot[i]] += 1.0
        for k in range(state.time[1]):
            write_readings(window, state.modes.theta[k], state.modes.sign[k], state.work.inverse, s)
            for i in range(window.size[1], s + 1):
                if window.slot[i] >= 0:
                    marginalise_row(window, state.prior, state.modes, k, i, state.work)
        window.size[0] -= 1
        window.size[1] = s
        for i in range(window.size[0]):
            window.slot[i], window.value[i] = window.slot[i + 1], window.value[i + 1]
    window.slot[window.size[0]], window.value[window.size[0]] = slot, value
    window.size[0] += 1


@inner
def _score_arms(state: SharedLARLState) -> None:
    """Set each arm's predicted mean and mean + α sd, averaged over modes by evidence."""
    s, total = state.prior.precision.size, 0.0
    top = state.modes.evidence[best_mode(state.modes, state.time[1])]
    for k in range(state.time[1]):
        total += math.exp(state.modes.evidence[k] - top)
    for arm in range(state.arm_slot.size):
        mean, variance, weights = 0.0, 0.0, 0.0
        for k in range(state.time[1]):
            weight = math.exp(state.modes.evidence[k] - top) / total
            if state.arm_slot[arm] >= 0 and weight > 1e-9:
                centre, own = predict_arm(state.window, state.modes, k, s, state.arm_slot[arm], state.work.candidate)
                weights += weight
                gap = centre - mean
                mean += gap * weight / weights
                variance += weight * (own + gap * (centre - mean))
        state.mean[arm] = mean
        state.score[arm] = mean + state.alpha * math.sqrt(max(variance, 0.0))


def act(state: SharedLARLState, bits: Bits) -> int:
    if state.offset_scale[1] == 0.0 and state.window.size[2] == state.arm_slot.size:
        return pick(bits, state.arm_slot.size)
    remaining = pick(bits, max(state.arm_slot.size - state.window.size[2], 1))
    best, choice = -math.inf, 0
    for arm in range(state.arm_slot.size):
        if state.arm_slot[arm] < 0:
            if remaining == 0:
                return arm
            remaining -= 1
        elif state.score[arm] > best:
            best, choice = state.score[arm], arm
    return choice


def action_probabilities(state: SharedLARLState, available: Mask, out: Floats) -> None:
    unseen = 0
    for arm in range(out.size):
        unseen += available[arm] and state.arm_slot[arm] < 0
    if unseen > 0:
        for arm in range(out.size):
            out[arm] = 1.0 / unseen if available[arm] and state.arm_slot[arm] < 0 else 0.0
    elif state.offset_scale[1] == 0.0:
        uniform_probabilities(available, out)
    else:
        argmax_probabilities(state.score, available, out)


def predict(state: SharedLARLState, arm: int) -> tuple[float, float]:
    if state.arm_slot[arm] < 0 or state.offset_scale[1] == 0.0:
        return math.nan, math.nan
    mean = state.mean[arm]
    return state.offset_scale[0] + state.offset_scale[1] * mean, state.offset_scale[1] * (state.score[arm] - mean)


def update_missing(state: SharedLARLState, arm: int) -> None:
    """Append an entry without a reading; as a lag it counts as 0. Before the first reward, do nothing."""
    if state.window.size[2] > 0:
        state.time[0] += 1
        _append_entry(state, -1, 0.0)
        if state.offset_scale[1] > 0.0:
            _score_arms(state)


def update(state: SharedLARLState, arm: int, reward: float) -> None:
    window, modes, scale = state.window, state.modes, state.offset_scale
    if state.time[0] == 0:
        scale[0] = reward
    state.time[0] += 1
    value = reward - scale[0]
    if abs(value) > scale[1] * RESCALE_FACTOR:
        _reset_scale(state, value)
    if scale[1] > 0.0:
        value /= scale[1]
    if state.arm_slot[arm] < 0:
        _add_arm(state, arm, value)
    _append_entry(state, state.arm_slot[arm], value)
    if scale[1] == 0.0:
        return
    steps = min(max(state.effort // window.size[0], 1), 8)
    best = best_mode(state.modes, state.time[1])
    before = modes.evidence[best]
    optimise(window, state.prior, modes, best, state.work, steps)
    for k in range(state.time[1]):
        if k != best and (before - modes.evidence[k] < DORMANT_GAP or (state.time[0] + k) % DORMANT_EVERY == 0):
            optimise(window, state.prior, modes, k, state.work, steps)
        elif k != best:
            modes.evidence[k] += modes.evidence[best] - before
    try_sign_flip(window, state.prior, modes, state.time[1], state.marginalised, state.time[0], state.work, steps)
    _score_arms(state)


@register(
    SharedLARLState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class SharedLARL(Policy):
    """LARL whose arms share one latent state: 2|A| + s + 2 parameters instead of |A|(2s|A| + 1).

    It needs neither the units of the rewards nor the order of the latent process, which may be up to about `s`. It
    plays each arm once, then the arm with the largest predicted mean + `alpha` standard deviations.

    Parameters
    ----------
    s : int, >= 1, default 10
        Number of past steps that predict the next reward.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard deviations due to the arm's own parameters.
    ridge : float, > 0, default 15.0
        Prior precision of the coefficients: lag j = 1, 2, … has precision ``ridge * j``.
    window : int, >= 1, default 200
        Number of steps on which the parameters are refitted. Older steps enter through a quadratic approximation.
    modes : int, >= 1, default 4
        Number of choices of the arms' signs that are fitted in parallel.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "SharedLARL", "s": 3}')
    SharedLARL(s=3, alpha=1.0, ridge=15.0, window=200, modes=4)
    """

    s: int = checked(integer(1), 10)
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 15.0)
    window: int = checked(integer(1), 200)
    modes: int = checked(integer(1), 4)

    def init(self, arms: int, **_: Any) -> SharedLARLState:
        d, entries = self.s + 2 + 2 * arms, self.window + self.s
        count = min(2 ** min(arms - 1, 30), self.modes) + 1
        window = RewardWindow(
            slot=np.zeros(entries, dtype=np.int64),
            value=np.zeros(entries),
            y=np.zeros(entries),
            row=np.zeros(d),
            size=np.zeros(3, dtype=np.int64),
        )
        prior = Prior(self.ridge * np.arange(1.0, self.s + 1.0), np.zeros(1))
        modes = Modes(
            theta=np.zeros((count, d)),
            sign=np.ones((count, arms)),
            factor=np.zeros((count, d, d)),
            evidence=np.zeros(count),
            marginal_centre=np.zeros((count, d)),
            marginal_gradient=np.zeros((count, d)),
            marginal_curvature=np.zeros((count, d, d)),
            marginal_loss=np.zeros(count),
        )
        return SharedLARLState(
            window=window,
            prior=prior,
            modes=modes,
            work=Work(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(arms)),
            arm_slot=np.full(arms, -1, dtype=np.int64),
            marginalised=np.zeros(arms),
            offset_scale=np.zeros(2),
            time=np.array([0, 1], dtype=np.int64),
            mean=np.zeros(arms),
            score=np.zeros(arms),
            alpha=self.alpha,
            effort=300,
        )
