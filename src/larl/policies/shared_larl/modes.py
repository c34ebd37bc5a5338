"""The modes of the posterior, one per choice of signs: optimise, replace and predict with them."""

import math

import numpy as np

from larl._core.compile import assign, inline, inner
from larl.policies._linalg.cholesky import solve_lower
from larl.policies.shared_larl.model import Modes, RewardWindow, Work, effect, gauss_newton_step
from larl.policies.shared_larl.prior import (
    EFFECT_VARIANCE,
    EFFECT_VARIANCE_WEIGHT,
    Floats,
    Prior,
    arm_offset,
    mean_log_scale,
)


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
    for j in range(modes.effect_variance.shape[1]):
        assign(modes.effect_variance[target, j], modes.effect_variance[source, j])
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
def estimate_effect_variances(window: RewardWindow, modes: Modes, k: int, s: int) -> None:
    """Make one EM step for the prior variances of the context's effects in mode k.

    A variance becomes the mean of the effects' expected squares and, with weight EFFECT_VARIANCE_WEIGHT, of its start.
    So the effects of a number without an effect shrink ever more, and those of a number with a large effect do not.
    """
    contexts, known, theta = window.context.shape[1], window.size[2], modes.theta[k]
    d, x = arm_offset(s, contexts, known), np.empty(arm_offset(s, contexts, known))
    unit, start = math.exp(-2.0 * mean_log_scale(theta, known, s, contexts)), EFFECT_VARIANCE / max(contexts, 1)
    for j in range(contexts):
        common, own = s + 2 + j, 0.0
        for a in range(known):
            own += expected_square(modes.factor[k], theta, arm_offset(s, contexts, a) + 2 + j, common, x, d)
        square = expected_square(modes.factor[k], theta, common, -1, x, d)
        weight = EFFECT_VARIANCE_WEIGHT
        modes.effect_variance[k, j, 0] = (weight * start + unit * square) / (weight + 1.0)
        modes.effect_variance[k, j, 1] = (weight * start + unit * own) / (weight + known)


@inline
def expected_square(factor: Floats, theta: Floats, index: int, other: int, x: Floats, d: int) -> float:
    """Return the posterior mean of the square of a parameter, minus the parameter `other` unless that is −1."""
    for p in range(d):
        x[p] = 0.0
    x[index], mean = 1.0, theta[index]
    if other >= 0:
        x[other], mean = -1.0, mean - theta[other]
    return mean * mean + solve_lower(factor, x, d)


@inner
def predict_arm(
    window: RewardWindow, modes: Modes, k: int, s: int, slot: int, context: Floats, x: Floats
) -> tuple[float, float]:
    """Return an arm's next mean reward m_a + η_aᵀx + ρ_a Σ g_j y_{t−1−j} in mode k, and its variance due to the arm.

    That is due to m_a and ℓ_a. It omits the uncertainty of g and of other arms, which playing this arm would not reduce
    more than playing another one, and that of η_a: contexts that vary explore by themselves. `context` is that of the
    next step; `x` is scratch.
    """
    theta, sign, contexts = modes.theta[k], modes.sign[k], context.size
    a = arm_offset(s, contexts, slot)
    for p in range(x.size):
        x[p] = 0.0
    rho, level = sign[slot] * math.exp(theta[a + 1]), 0.0
    x[a] = 1.0
    for j in range(min(s, window.size[0])):
        entry = window.size[0] - 1 - j
        other = window.slot[entry]
        if other < 0:
            continue
        b = arm_offset(s, contexts, other)
        reading = window.value[entry] - theta[b] - effect(theta, b + 2, window.context[entry])
        y = reading * sign[other] * math.exp(-theta[b + 1])
        level += theta[j] * y
        if other == slot:
            x[a] -= theta[j]
            x[a + 1] -= rho * theta[j] * y
    x[a + 1] += rho * level
    mean = theta[a] + rho * level + effect(theta, a + 2, context)
    return mean, solve_lower(modes.factor[k], x, arm_offset(s, contexts, window.size[2]))
