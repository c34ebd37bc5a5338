"""The State of SharedLARL, and its changes by a new scale, a new arm or a new entry of the window."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inner
from larl.policies._bounds import MAX_STEPS, Bound
from larl.policies.shared_larl.model import Modes, RewardWindow, Work, effect, marginalise_row, write_readings
from larl.policies.shared_larl.modes import copy_mode
from larl.policies.shared_larl.prior import Floats, Prior, arm_offset, mean_log_scale


class SharedLARLState(NamedTuple):
    window: RewardWindow
    prior: Prior
    modes: Modes  # the last one is scratch for `try_sign_flip`
    work: Work
    arm_slot: NDArray[np.int64]  # (arms,) position of each arm in the order of first plays, −1 before the first play
    marginalised: Floats  # (arms,) number of rows of each slot that left the window
    offset_scale: Floats  # (2,) the first reward, and the power of two that rewards are divided by (0 until two differ)
    time: NDArray[np.int64]  # (2,) steps so far, modes in use
    context: Floats  # (p,) of the next step
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
def reset_scale(state: SharedLARLState, value: float) -> None:
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
            modes.theta[k, arm_offset(s, state.context.size, a) + 1] = state.prior.log_scale[0]


@inner
def add_arm(state: SharedLARLState, arm: int, value: float) -> None:
    """Add an arm that is played for the first time, with both signs while there are free modes."""
    window, modes, s = state.window, state.modes, state.prior.precision.size
    slot, used, contexts = window.size[2], state.time[1], state.context.size
    state.arm_slot[arm] = slot
    for k in range(used):
        theta, at = modes.theta[k], arm_offset(s, contexts, slot)
        theta[at] = value - effect(theta, s + 2, state.context)
        theta[at + 1] = mean_log_scale(theta, slot, s, contexts) if slot > 0 else state.prior.log_scale[0]
        for j in range(contexts):
            theta[at + 2 + j] = theta[s + 2 + j]
        modes.sign[k, slot] = 1.0
    window.size[2] += 1
    if slot > 0:
        for k in range(used):
            if state.time[1] < modes.sign.shape[0] - 1:
                copy_mode(modes, k, state.time[1])
                modes.sign[state.time[1], slot] = -1.0
                state.time[1] += 1


@inner
def append_entry(state: SharedLARLState, slot: int, value: float) -> None:
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
            assign(window.context[i], window.context[i + 1])
    window.slot[window.size[0]], window.value[window.size[0]] = slot, value
    assign(window.context[window.size[0]], state.context)
    window.size[0] += 1
