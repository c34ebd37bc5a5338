"""The modes of the posterior, one per choice of signs: optimise, replace and predict with them."""

import math

from larl._core.compile import assign, inner
from larl.policies._linalg.cholesky import solve_lower
from larl.policies.shared_larl.model import Floats, Modes, Prior, RewardWindow, Work, arm_offset, gauss_newton_step


@inner
def copy_mode(modes: Modes, source: int, target: int) -> None:
    """Copy mode `source` to mode `target`."""
    assign(modes.theta[target], modes.theta[source])
    assign(modes.sign[target], modes.sign[source])
    assign(modes.marginal_centre[target], modes.marginal_centre[source])
    assign(modes.marginal_gradient[target], modes.marginal_gradient[source])
    for p in range(modes.theta.shape[1]):
        assign(modes.factor[target, p], modes.factor[source, p])
        assign(modes.marginal_curvature[target, p], modes.marginal_curvature[source, p])
    modes.evidence[target] = modes.evidence[source]
    modes.marginal_loss[target] = modes.marginal_loss[source]


@inner
def best_mode(modes: Modes, used: int) -> int:
    """Return the mode with the largest evidence among the first `used`."""
    best = 0
    for k in range(1, used):
        if modes.evidence[k] > modes.evidence[best]:
            best = k
    return best


@inner
def optimise(window: RewardWindow, prior: Prior, modes: Modes, k: int, work: Work, steps: int) -> None:
    """Make at most `steps` Gauss–Newton steps of mode k; stop when the decrement is small."""
    for _ in range(steps):
        if gauss_newton_step(window, prior, modes, k, work) < 0.01:
            return


@inner
def try_sign_flip(
    window: RewardWindow, prior: Prior, modes: Modes, used: int, marginalised: Floats, t: int, work: Work, steps: int
) -> None:
    """Flip one arm's sign in the best mode; if the result has more evidence than the worst mode, replace that one.

    Done only if there are more sign choices than modes. `marginalised` is the number of rows of each slot that left the
    window.
    """
    known, spare, worst = window.size[2], modes.sign.shape[0] - 1, 0
    if 2.0 ** (known - 1) <= spare:
        return
    flipped = t % known
    copy_mode(modes, best_mode(modes, used), spare)
    for a in range(1, known):  # signs are relative to slot 0: flipping that one flips all others
        if a == flipped or flipped == 0:
            modes.sign[spare, a] *= -1.0
            if marginalised[a] > 0.0:
                return  # the quadratic of the rows that left was made with the other sign
    for k in range(used):
        is_same = True
        for a in range(known):
            is_same = is_same and modes.sign[k, a] == modes.sign[spare, a]
        if is_same:
            return
        if modes.evidence[k] < modes.evidence[worst]:
            worst = k
    optimise(window, prior, modes, spare, work, steps)
    if modes.evidence[spare] > modes.evidence[worst]:
        copy_mode(modes, spare, worst)


@inner
def predict_arm(window: RewardWindow, modes: Modes, k: int, s: int, slot: int, x: Floats) -> tuple[float, float]:
    """Return an arm's next mean reward m_a + ρ_a Σ g_j y_{t−1−j} in mode k, and its variance due to m_a and ℓ_a.

    The variance omits the uncertainty of g and of other arms, which playing this arm would not reduce more than playing
    another one. `x` is scratch.
    """
    theta, sign, a = modes.theta[k], modes.sign[k], arm_offset(s, slot)
    for p in range(x.size):
        x[p] = 0.0
    rho, level = sign[slot] * math.exp(theta[a + 1]), 0.0
    x[a] = 1.0
    for j in range(min(s, window.size[0])):
        other = window.slot[window.size[0] - 1 - j]
        if other < 0:
            continue
        b = arm_offset(s, other)
        y = (window.value[window.size[0] - 1 - j] - theta[b]) * sign[other] * math.exp(-theta[b + 1])
        level += theta[j] * y
        if other == slot:
            x[a] -= theta[j]
            x[a + 1] -= rho * theta[j] * y
    x[a + 1] += rho * level
    return theta[a] + rho * level, solve_lower(modes.factor[k], x, arm_offset(s, window.size[2]))
