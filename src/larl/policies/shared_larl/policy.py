"""LARL whose arms share one latent state: what Lemma 2's reduction throws away (docs/theory.md, section 10)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Mask, evenly, first_best
from larl.policies.shared_larl.model import Floats, Modes, Prior, Rows, Work, leave, mean_level, place, readings
from larl.policies.shared_larl.modes import best_mode, challenge, copy_mode, forecast, relax

DEAD = 10.0  # a mode whose evidence is e^10 times smaller than the best's is looked at every REST steps
REST = 16
JUMP = 2.0**20  # a reward that far beyond the unit makes the unit anew


class SharedLARLState(NamedTuple):
    rows: Rows
    prior: Prior
    modes: Modes  # the last one is room for a challenger
    work: Work
    seat: NDArray[np.int64]  # (arms,) place of each arm in the order of first plays, −1 before
    left: Floats  # (arms,) rows of each seat that left the window
    unit: Floats  # (2,) the first reward, and the power of two that rewards are divided by (0 until two differ)
    time: NDArray[np.int64]  # (2,) steps so far, modes in use
    mean: Floats  # (arms,) forecasts
    score: Floats  # (arms,) what `act` compares
    alpha: float
    effort: int  # rows looked at in a step by repeated improvements of a mode


@inner
def _reckon(state: SharedLARLState, value: float) -> None:
    """Make |value| the size of things: the unit is the power of two above it, and every mode begins afresh."""
    rows, modes, s = state.rows, state.modes, state.prior.precision.size
    fraction, exponent = math.frexp(abs(value))
    before, state.unit[1] = state.unit[1], math.ldexp(1.0, exponent)
    state.prior.level[0] = math.log(fraction)
    for i in range(rows.size[0]):
        rows.value[i] *= before / state.unit[1]
    for k in range(state.time[1]):
        modes.left_value[k] = 0.0
        for p in range(modes.theta.shape[1]):
            modes.theta[k, p] = modes.left_slope[k, p] = modes.left_at[k, p] = 0.0
            for q in range(modes.theta.shape[1]):
                modes.left_curve[k, p, q] = 0.0
        for a in range(rows.size[2]):
            modes.theta[k, place(s, a) + 1] = state.prior.level[0]


@inner
def _meet(state: SharedLARLState, arm: int, value: float) -> None:
    """Seat an arm that is played for the first time, with either sign while there is room for modes."""
    rows, modes, s = state.rows, state.modes, state.prior.precision.size
    seat, used = rows.size[2], state.time[1]
    state.seat[arm] = seat
    for k in range(used):
        modes.theta[k, place(s, seat)] = value
        modes.theta[k, place(s, seat) + 1] = mean_level(modes.theta[k], seat, s) if seat > 0 else state.prior.level[0]
        modes.sign[k, seat] = 1.0
    rows.size[2] += 1
    if seat > 0:
        for k in range(used):
            if state.time[1] < modes.sign.shape[0] - 1:
                copy_mode(modes, k, state.time[1])
                modes.sign[state.time[1], seat] = -1.0
                state.time[1] += 1


@inner
def _append(state: SharedLARLState, seat: int, value: float) -> None:
    """Add an entry (seat −1: without a reward); where there is no room, the oldest row leaves the window."""
    rows, s = state.rows, state.prior.precision.size
    if rows.size[0] == rows.seat.size:
        for i in range(rows.size[1], s + 1):  # the first time, all the rows that have fewer than s lags leave with it
            if rows.seat[i] >= 0:
                state.left[rows.seat[i]] += 1.0
        for k in range(state.time[1]):
            readings(rows, state.modes.theta[k], state.modes.sign[k], state.work.inverse, s)
            for i in range(rows.size[1], s + 1):
                if rows.seat[i] >= 0:
                    leave(rows, state.prior, state.modes, k, i, state.work)
        rows.size[0] -= 1
        rows.size[1] = s
        for i in range(rows.size[0]):
            rows.seat[i], rows.value[i] = rows.seat[i + 1], rows.value[i + 1]
    rows.seat[rows.size[0]], rows.value[rows.size[0]] = seat, value
    rows.size[0] += 1


@inner
def _rate(state: SharedLARLState) -> None:
    """Write each arm's forecast mean + α sd, over modes by their evidence."""
    s, total = state.prior.precision.size, 0.0
    top = state.modes.evidence[best_mode(state.modes, state.time[1])]
    for k in range(state.time[1]):
        total += math.exp(state.modes.evidence[k] - top)
    for arm in range(state.seat.size):
        mean, variance, so_far = 0.0, 0.0, 0.0
        for k in range(state.time[1]):
            weight = math.exp(state.modes.evidence[k] - top) / total
            if state.seat[arm] >= 0 and weight > 1e-9:
                centre, own = forecast(state.rows, state.modes, k, s, state.seat[arm], state.work.trial)
                so_far += weight
                gap = centre - mean
                mean += gap * weight / so_far
                variance += weight * (own + gap * (centre - mean))
        state.mean[arm] = mean
        state.score[arm] = mean + state.alpha * math.sqrt(max(variance, 0.0))


def act(state: SharedLARLState, bits: Bits) -> int:
    if state.unit[1] == 0.0 and state.rows.size[2] == state.seat.size:
        return pick(bits, state.seat.size)
    left = pick(bits, max(state.seat.size - state.rows.size[2], 1))
    best, choice = -math.inf, 0
    for arm in range(state.seat.size):
        if state.seat[arm] < 0:
            if left == 0:
                return arm
            left -= 1
        elif state.score[arm] > best:
            best, choice = state.score[arm], arm
    return choice


def action_probabilities(state: SharedLARLState, available: Mask, out: Floats) -> None:
    unseen = 0
    for arm in range(out.size):
        unseen += available[arm] and state.seat[arm] < 0
    if unseen > 0:
        for arm in range(out.size):
            out[arm] = 1.0 / unseen if available[arm] and state.seat[arm] < 0 else 0.0
    elif state.unit[1] == 0.0:
        evenly(available, out)
    else:
        first_best(state.score, available, out)


def predict(state: SharedLARLState, arm: int) -> tuple[float, float]:
    if state.seat[arm] < 0 or state.unit[1] == 0.0:
        return math.nan, math.nan
    mean = state.mean[arm]
    return state.unit[0] + state.unit[1] * mean, state.unit[1] * (state.score[arm] - mean)


def update_missing(state: SharedLARLState, arm: int) -> None:
    """An entry without a reading, which as a lag counts as an average one. Before the first reward, nothing."""
    if state.rows.size[2] > 0:
        state.time[0] += 1
        _append(state, -1, 0.0)
        if state.unit[1] > 0.0:
            _rate(state)


def update(state: SharedLARLState, arm: int, reward: float) -> None:
    rows, modes, unit = state.rows, state.modes, state.unit
    if state.time[0] == 0:
        unit[0] = reward
    state.time[0] += 1
    value = reward - unit[0]
    if abs(value) > unit[1] * JUMP:
        _reckon(state, value)
    if unit[1] > 0.0:
        value /= unit[1]
    if state.seat[arm] < 0:
        _meet(state, arm, value)
    _append(state, state.seat[arm], value)
    if unit[1] == 0.0:
        return
    steps = min(max(state.effort // rows.size[0], 1), 8)
    best = best_mode(state.modes, state.time[1])
    before = modes.evidence[best]
    relax(rows, state.prior, modes, best, state.work, steps)
    for k in range(state.time[1]):
        if k != best and (before - modes.evidence[k] < DEAD or (state.time[0] + k) % REST == 0):
            relax(rows, state.prior, modes, k, state.work, steps)
        elif k != best:
            modes.evidence[k] += modes.evidence[best] - before
    challenge(rows, state.prior, modes, state.time[1], state.left, state.time[0], state.work, steps)
    _rate(state)


@register(
    SharedLARLState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class SharedLARL(Policy):
    """LARL whose arms share one latent state: 2|A| + s parameters and some for the start, in place of |A|(2s|A|+1).

    Nothing has to be told: neither units nor the order of the latent process, which may be up to about `s`. Each arm is
    played once, then the largest forecast + `alpha` standard deviations of the arm's own parameters wins. g_j has prior
    precision `ridge`·(1 + j). Parameters are refined on the last `window` steps; what is older counts as it was
    understood when it left. Of the signs that the arms' slopes can have, `modes` choices are followed.
    """

    s: int = checked(integer(1), 10)
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 15.0)
    window: int = checked(integer(1), 200)
    modes: int = checked(integer(1), 4)

    def init(self, arms: int, **_: Any) -> SharedLARLState:
        d, entries = self.s + 2 + 2 * arms, self.window + self.s
        slots = min(2 ** min(arms - 1, 30), self.modes) + 1
        size, seat = np.zeros(3, dtype=np.int64), np.zeros(entries, dtype=np.int64)
        rows = Rows(seat, np.zeros(entries), np.zeros(entries), np.zeros(d), size)
        prior = Prior(self.ridge * np.arange(1.0, self.s + 1.0), np.zeros(1))
        modes = Modes(
            np.zeros((slots, d)),
            np.ones((slots, arms)),
            np.zeros((slots, d, d)),
            np.zeros(slots),
            np.zeros((slots, d)),
            np.zeros((slots, d)),
            np.zeros((slots, d, d)),
            np.zeros(slots),
        )
        work = Work(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(arms))
        seats, time = np.full(arms, -1, dtype=np.int64), np.array([0, 1], dtype=np.int64)
        return SharedLARLState(
            rows,
            prior,
            modes,
            work,
            seats,
            np.zeros(arms),
            np.zeros(2),
            time,
            np.zeros(arms),
            np.zeros(arms),
            self.alpha,
            300,
        )
