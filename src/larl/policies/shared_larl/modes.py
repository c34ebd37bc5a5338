"""Modes side by side: one for each choice of signs that is followed. How they are improved, replaced, and forecast."""

import math

from larl._core.compile import assign, inner
from larl.policies._linalg.cholesky import solve_lower
from larl.policies.shared_larl.model import Floats, Modes, Prior, Rows, Work, improve, place


@inner
def copy_mode(modes: Modes, source: int, target: int) -> None:
    assign(modes.theta[target], modes.theta[source])
    assign(modes.sign[target], modes.sign[source])
    assign(modes.left_at[target], modes.left_at[source])
    assign(modes.left_slope[target], modes.left_slope[source])
    for p in range(modes.theta.shape[1]):
        assign(modes.factor[target, p], modes.factor[source, p])
        assign(modes.left_curve[target, p], modes.left_curve[source, p])
    modes.evidence[target] = modes.evidence[source]
    modes.left_value[target] = modes.left_value[source]


@inner
def best_mode(modes: Modes, used: int) -> int:
    """Of the first `used` modes the one of largest evidence."""
    best = 0
    for k in range(1, used):
        if modes.evidence[k] > modes.evidence[best]:
            best = k
    return best


@inner
def relax(rows: Rows, prior: Prior, modes: Modes, k: int, work: Work, steps: int) -> None:
    """Improve mode k until it hardly changes, at most so many times."""
    for _ in range(steps):
        if improve(rows, prior, modes, k, work) < 0.01:
            return


@inner
def challenge(rows: Rows, prior: Prior, modes: Modes, used: int, left: Floats, t: int, work: Work, steps: int) -> None:
    """Where not all signs can be followed: the best mode with one arm's sign turned may replace the worst mode.

    `left`: how many rows of each seat left the window.
    """
    known, spare, worst = rows.size[2], modes.sign.shape[0] - 1, 0
    if 2.0 ** (known - 1) <= spare:
        return
    turned = t % known
    copy_mode(modes, best_mode(modes, used), spare)
    for a in range(1, known):  # signs count relative to seat 0's: to turn that one is to turn all others
        if a == turned or turned == 0:
            modes.sign[spare, a] *= -1.0
            if left[a] > 0.0:
                return  # what left the window was read with the other sign
    for k in range(used):
        same = True
        for a in range(known):
            same = same and modes.sign[k, a] == modes.sign[spare, a]
        if same:
            return
        if modes.evidence[k] < modes.evidence[worst]:
            worst = k
    relax(rows, prior, modes, spare, work, steps)
    if modes.evidence[spare] > modes.evidence[worst]:
        copy_mode(modes, spare, worst)


@inner
def forecast(rows: Rows, modes: Modes, k: int, s: int, seat: int, x: Floats) -> tuple[float, float]:
    """An arm's next mean reward m_a + ρ_a Σ g_j y_{t−1−j} in mode k, and its variance from m_a and ℓ_a alone.

    What is unknown of g and of other arms is left out: this arm is not the one to play to learn it. `x` is scratch.
    """
    theta, sign, a = modes.theta[k], modes.sign[k], place(s, seat)
    for p in range(x.size):
        x[p] = 0.0
    rho, level = sign[seat] * math.exp(theta[a + 1]), 0.0
    x[a] = 1.0
    for j in range(min(s, rows.size[0])):
        other = rows.seat[rows.size[0] - 1 - j]
        if other < 0:
            continue
        b = place(s, other)
        y = (rows.value[rows.size[0] - 1 - j] - theta[b]) * sign[other] * math.exp(-theta[b + 1])
        level += theta[j] * y
        if other == seat:
            x[a] -= theta[j]
            x[a + 1] -= rho * theta[j] * y
    x[a + 1] += rho * level
    return theta[a] + rho * level, solve_lower(modes.factor[k], x, place(s, rows.size[2]))
