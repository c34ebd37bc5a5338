"""LARL with one latent state for all arms: every reward teaches every arm."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, whole
from larl._compile import inner
from larl._words import pick
from larl.policies._contract import Policy, register
from larl.policies._shared import Modes, Prior, Rows, Work, improve, leave, readings, solve_lower

Floats = NDArray[np.float64]


class SharedLARLState(NamedTuple):
    rows: Rows
    prior: Prior
    modes: Modes
    work: Work
    seat: NDArray[np.int64]  # (arms,) place of each arm in the order of first plays, −1 before
    gone: Floats  # (arms,) rows of each seat that left the window
    unit: Floats  # (2,) the first reward, and the power of two that rewards are divided by (0 until they differ)
    time: NDArray[np.int64]  # (2,) steps so far, and modes in use
    score: Floats  # (arms,)
    alpha: float
    budget: int


@inner
def _copy(modes: Modes, source: int, target: int) -> None:
    d = modes.theta.shape[1]
    for p in range(d):
        modes.theta[target, p] = modes.theta[source, p]
        modes.left_at[target, p] = modes.left_at[source, p]
        modes.left_slope[target, p] = modes.left_slope[source, p]
        for q in range(d):
            modes.factor[target, p, q] = modes.factor[source, p, q]
            modes.left_curve[target, p, q] = modes.left_curve[source, p, q]
    for a in range(modes.sign.shape[1]):
        modes.sign[target, a] = modes.sign[source, a]
    modes.evidence[target] = modes.evidence[source]
    modes.left_value[target] = modes.left_value[source]


@inner
def _meet(state: SharedLARLState, arm: int, value: float) -> None:
    """Seat an arm that is played for the first time, with either sign where there is room."""
    rows, modes, s = state.rows, state.modes, state.prior.precision.size
    seat = rows.size[2]
    state.seat[arm] = seat
    for k in range(state.time[1]):
        level = state.prior.level[0]
        if seat > 0:
            level = 0.0
            for a in range(seat):
                level += modes.theta[k, s + 3 + 2 * a] / seat
        modes.theta[k, s + 2 + 2 * seat] = value
        modes.theta[k, s + 3 + 2 * seat] = level
        modes.sign[k, seat] = 1.0
    rows.size[2] += 1
    if seat > 0:
        for k in range(state.time[1]):
            if state.time[1] < modes.sign.shape[0] - 1:
                _copy(modes, k, state.time[1])
                modes.sign[state.time[1], seat] = -1.0
                state.time[1] += 1


@inner
def _append(state: SharedLARLState, seat: int, value: float) -> None:
    """Add an entry; rows that no longer fit leave the window."""
    rows, prior, s = state.rows, state.prior, state.prior.precision.size
    if rows.size[0] == rows.arm.size:
        for i in range(rows.size[1], s + 1):
            state.gone[rows.arm[i]] += 1.0
        for k in range(state.time[1]):
            readings(rows, state.modes.theta[k], state.modes.sign[k], state.work.inverse, s)
            for i in range(rows.size[1], s + 1):
                leave(rows, prior, state.modes, k, i, state.work)
        rows.size[0] -= 1
        rows.size[1] = s
        for i in range(rows.size[0]):
            rows.arm[i] = rows.arm[i + 1]
            rows.value[i] = rows.value[i + 1]
    rows.arm[rows.size[0]] = seat
    rows.value[rows.size[0]] = value
    if rows.size[0] >= rows.size[1]:
        rows.plays[seat] += 1.0
    rows.size[0] += 1


@inner
def _relax(state: SharedLARLState, k: int, most: int) -> None:
    for _ in range(most):
        if improve(state.rows, state.prior, state.modes, k, state.work) < 1e-2:
            break


@inner
def _best(state: SharedLARLState) -> int:
    best = 0
    for k in range(1, state.time[1]):
        if state.modes.evidence[k] > state.modes.evidence[best]:
            best = k
    return best


@inner
def _challenge(state: SharedLARLState, most: int) -> None:
    """Try the best mode with one sign turned in the place of the worst."""
    modes, known, spare = state.modes, state.rows.size[2], state.modes.sign.shape[0] - 1
    if known < 2 or 2.0 ** (known - 1) <= spare:
        return
    turned = state.time[0] % known
    for a in range(known):
        if (a == turned or turned == 0) and state.gone[a] > 0.0:
            return
    _copy(modes, _best(state), spare)
    for a in range(1, known):
        if a == turned or turned == 0:
            modes.sign[spare, a] *= -1.0
    worst = 0
    for k in range(state.time[1]):
        same = True
        for a in range(known):
            same = same and modes.sign[k, a] == modes.sign[spare, a]
        if same:
            return
        if modes.evidence[k] < modes.evidence[worst]:
            worst = k
    _relax(state, spare, most)
    if modes.evidence[spare] > modes.evidence[worst]:
        _copy(modes, spare, worst)


@inner
def _score(state: SharedLARLState) -> None:
    """Write each arm's predicted mean + α standard deviations, over modes and parameters."""
    rows, modes, s, x = state.rows, state.modes, state.prior.precision.size, state.work.trial
    known, n = rows.size[2], rows.size[0]
    d, top = s + 2 + 2 * known, modes.evidence[_best(state)]
    total = 0.0
    for k in range(state.time[1]):
        total += math.exp(modes.evidence[k] - top)
    for arm in range(state.seat.size):
        mean, square = 0.0, 0.0
        a = state.seat[arm]
        for k in range(state.time[1]):
            if a < 0:
                continue
            theta = modes.theta[k]
            for p in range(d):
                x[p] = 0.0
            rho, level = modes.sign[k, a] * math.exp(theta[s + 3 + 2 * a]), 0.0
            for j in range(min(s, n)):
                b = rows.arm[n - 1 - j]
                over = modes.sign[k, b] * math.exp(-theta[s + 3 + 2 * b])
                y = (rows.value[n - 1 - j] - theta[s + 2 + 2 * b]) * over
                level += theta[j] * y
                x[j] = rho * y
                x[s + 2 + 2 * b] -= rho * theta[j] * over
                x[s + 3 + 2 * b] -= rho * theta[j] * y
            x[s + 2 + 2 * a] += 1.0
            x[s + 3 + 2 * a] += rho * level
            centre = theta[s + 2 + 2 * a] + rho * level
            weight = math.exp(modes.evidence[k] - top) / total
            mean += weight * centre
            square += weight * (centre * centre + solve_lower(modes.factor[k], x, d))
        state.score[arm] = mean + state.alpha * math.sqrt(max(square - mean * mean, 0.0))


def act(state: SharedLARLState, word: np.uint64) -> int:
    unseen = state.seat.size - state.rows.size[2]
    if unseen > 0:
        place = pick(word, unseen)
        for arm in range(state.seat.size):
            if state.seat[arm] < 0:
                if place == 0:
                    return arm
                place -= 1
    best, choice = -math.inf, 0
    for arm in range(state.seat.size):
        if state.score[arm] > best:
            best, choice = state.score[arm], arm
    return choice


def update(state: SharedLARLState, arm: int, reward: float) -> None:
    rows, modes, unit, s = state.rows, state.modes, state.unit, state.prior.precision.size
    if state.time[0] == 0:
        unit[0] = reward
    state.time[0] += 1
    value = reward - unit[0]
    if unit[1] == 0.0 and value != 0.0:
        unit[1] = 2.0 ** math.floor(math.log2(abs(value)))
        state.prior.level[0] = math.log(abs(value) / unit[1])
        for k in range(state.time[1]):
            for a in range(rows.size[2]):
                modes.theta[k, s + 3 + 2 * a] = state.prior.level[0]
    if unit[1] > 0.0:
        value /= unit[1]
    if state.seat[arm] < 0:
        _meet(state, arm, value)
    _append(state, state.seat[arm], value)
    if unit[1] > 0.0:
        most = min(max(state.budget // rows.size[0], 1), 8)
        best = _best(state)
        before = modes.evidence[best]
        _relax(state, best, most)
        for k in range(state.time[1]):
            if k != best:
                if before - modes.evidence[k] < 10.0 or rows.size[0] < 10 or (state.time[0] + k) % 16 == 0:
                    _relax(state, k, most)
                else:
                    modes.evidence[k] += modes.evidence[best] - before
        _challenge(state, most + 1)
        _score(state)


@register(SharedLARLState, act, update)
@dataclass(frozen=True)
class SharedLARL(Policy):
    """LARL whose arms share one latent state, by maximum a posteriori; 2|A| + s parameters for all arms together."""

    s: int = checked(whole(1), 10)
    alpha: float = checked(number(0.0), 1.0)
    window: int = checked(whole(2), 200)
    ridge: float = checked(number(above=0.0), 10.0)
    nu: float = checked(number(above=0.0), 5.0)
    tau: float = checked(number(above=0.0), 0.7)
    skip: int = checked(whole(0), 0)
    kappa: float = checked(number(above=0.0), 1.0)
    tail: float = checked(number(above=0.0), 2.0)
    start: float = checked(number(), 0.5)
    start_sd: float = checked(number(above=0.0), 1.0)
    decay: float = checked(number(), 1.0)
    cap: int = checked(whole(1), 4)
    budget: int = checked(whole(1), 150)

    def init(self, arms: int, **_: Any) -> SharedLARLState:
        d, n = self.s + 2 + 2 * arms, self.window + self.s
        slots = min(2 ** min(arms - 1, 10), self.cap) + 1
        rows = Rows(
            np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n), np.zeros(d),
            np.array([0, self.skip, 0], dtype=np.int64), np.zeros(arms),
        )  # fmt: skip
        precision = self.ridge * (1.0 + np.arange(self.s)) ** self.decay
        prior = Prior(precision, self.kappa, self.tail, self.tau**-2, 0.01, self.nu, self.start, self.start_sd**-2, 1e-6, np.zeros(1))
        modes = Modes(
            np.zeros((slots, d)), np.ones((slots, arms)), np.zeros((slots, d, d)), np.zeros(slots),
            np.zeros((slots, d)), np.zeros((slots, d)), np.zeros((slots, d, d)), np.zeros(slots),
        )  # fmt: skip
        work = Work(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(arms))
        time = np.array([0, 1], dtype=np.int64)
        return SharedLARLState(
            rows, prior, modes, work, np.full(arms, -1, dtype=np.int64), np.zeros(arms), np.zeros(2), time,
            np.zeros(arms), self.alpha, self.budget,
        )  # fmt: skip
