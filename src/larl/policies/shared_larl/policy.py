"""SharedLARL: LARL whose arms share one latent state, which Lemma 2 does not use (docs/theory.md, section 10)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.compile import assign, inner
from larl._core.random import Bits, pick
from larl._core.validation import checked, integer, number
from larl.policies._context_scale import check_context, context_scale_init
from larl.policies._contract import Policy
from larl.policies._probabilities import Mask, argmax_probabilities, uniform_probabilities
from larl.policies._registry import register
from larl.policies.shared_larl.model import Modes, RewardWindow, Work
from larl.policies.shared_larl.modes import best_mode, estimate_effect_variances, optimise, predict_arm, try_sign_flip
from larl.policies.shared_larl.prior import EFFECT_VARIANCE, Floats, Prior
from larl.policies.shared_larl.state import SharedLARLState, add_arm, append_entry, bounds, reset_scale

if TYPE_CHECKING:
    from larl.worlds.base import World

DORMANT_GAP = 10.0  # a mode this far below the best log evidence is dormant
DORMANT_EVERY = 16  # steps between updates of a dormant mode
RESCALE_FACTOR = 2.0**20  # a reward larger than this multiple of the scale resets the scale


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
                slot, work = state.arm_slot[arm], state.work.candidate
                centre, own = predict_arm(state.window, state.modes, k, s, slot, state.context, work)
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
        append_entry(state, -1, 0.0)
        if state.offset_scale[1] > 0.0:
            _score_arms(state)


def set_context(state: SharedLARLState, context: Floats) -> None:
    if state.context.size > 0:
        assign(state.context, context)
        if state.offset_scale[1] > 0.0:
            _score_arms(state)


def update(state: SharedLARLState, arm: int, reward: float) -> None:
    window, modes, scale = state.window, state.modes, state.offset_scale
    if state.time[0] == 0:
        scale[0] = reward
    state.time[0] += 1
    value = reward - scale[0]
    if abs(value) > scale[1] * RESCALE_FACTOR:
        reset_scale(state, value)
    if scale[1] > 0.0:
        value /= scale[1]
    is_new = state.arm_slot[arm] < 0
    if is_new:
        add_arm(state, arm, value)
    append_entry(state, state.arm_slot[arm], value)
    if scale[1] == 0.0:
        return
    steps = min(max(state.effort // window.size[0], 1), 8)
    best = best_mode(state.modes, state.time[1])
    before = modes.evidence[best]
    optimise(window, state.prior, modes, best, state.work, steps)
    for k in range(state.time[1]):
        is_active = before - modes.evidence[k] < DORMANT_GAP or (state.time[0] + k) % DORMANT_EVERY == 0
        if k != best and (is_active or is_new):  # a new arm enlarges the factor of every mode
            optimise(window, state.prior, modes, k, state.work, steps)
        elif k != best:
            modes.evidence[k] += modes.evidence[best] - before
    try_sign_flip(window, state.prior, modes, state.time[1], state.marginalised, state.time[0], state.work, steps)
    if state.context.size > 0:
        for k in range(state.time[1]):
            estimate_effect_variances(window, modes, k, state.prior.precision.size)
    _score_arms(state)


@register(
    SharedLARLState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
    set_context=set_context,
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
    context : int, >= 0, default 0
        Length of the observed context of a step, in any unit: its numbers are standardised. The effects of a number on
        the arms shrink towards a common effect, and that towards 0. How much is learnt for each number.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "SharedLARL", "s": 3}')
    SharedLARL(s=3, alpha=1.0, ridge=15.0, window=200, modes=4, context=0)
    """

    s: int = checked(integer(1), 10)
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 15.0)
    window: int = checked(integer(1), 200)
    modes: int = checked(integer(1), 4)
    context: int = checked(integer(0), 0)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        check_context("SharedLARL", self.context, world)
        d, entries = self.s + 2 + self.context + (2 + self.context) * arms, self.window + self.s
        count = min(2 ** min(arms - 1, 30), self.modes) + 1
        window = RewardWindow(
            slot=np.zeros(entries, dtype=np.int64),
            value=np.zeros(entries),
            context=np.zeros((entries, self.context)),
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
            effect_variance=np.full((count, self.context, 2), EFFECT_VARIANCE / max(self.context, 1)),
        )
        state = SharedLARLState(
            window=window,
            prior=prior,
            modes=modes,
            work=Work(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(arms)),
            arm_slot=np.full(arms, -1, dtype=np.int64),
            marginalised=np.zeros(arms),
            offset_scale=np.zeros(2),
            time=np.array([0, 1], dtype=np.int64),
            context=np.zeros(self.context),
            mean=np.zeros(arms),
            score=np.zeros(arms),
            alpha=self.alpha,
            effort=300,
        )
        return context_scale_init(state, self.context, arms) if self.context else state
