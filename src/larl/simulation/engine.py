"""The compiled simulation loops: trials × steps of one policy in one world, and cohorts of units.

A trial is a pure function of (policy, world, seed, trial). The noise of the world and the random bits of the policy are
separate streams keyed by (seed, trial), and every trial starts from a fresh State. So results depend neither on the
number of threads, nor on the size of a block, nor on the other policies of the comparison. Unit u of cohort c, with n
units in each cohort, has the world and the random bits of trial c·n + u; the units decide and learn one after another.

Policies and worlds are behind addresses (_core/states.py), so the loops are compiled once.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from larl._core.compile import any_nan, has_implementation, inline, inner, is_larl, kernel, naming_own_functions
from larl._core.entries import entry_address
from larl._core.random import EXPLORATION, POLICY, WORLD, Bits, empty_bits, random_bits, seed_bits, stream
from larl._core.states import Memory, bits_at, caller, copy_words, floats_at, kind_of, loader, words_at, words_of
from larl.policies._contract import Policy, act, set_context, set_true_means, update, update_missing
from larl.policies._deployment import draw_plain_arm, drawn_arm
from larl.policies._entry import Handle, update_and_act
from larl.policies._pooling import shared_fields
from larl.policies._probabilities import Floats as Floats
from larl.policies.deployed import Deployed, deployment_of
from larl.worlds.kernels import (
    WorldHandle,
    advance_world,
    begin_trial,
    play,
    true_means,
    world_context,
)

Arms = NDArray[np.int16]
Segments = NDArray[np.int64]


class Trace(NamedTuple):
    """Regret, chosen arm and observed reward of every step, each an array of shape (trials, steps)."""

    regret: Floats
    arm: Arms
    reward: Floats


def empty_trace(rows: int, steps: int) -> Trace:
    """Return an uninitialised trace with one row for each trial or unit."""
    return Trace(np.empty((rows, steps)), np.empty((rows, steps), dtype=np.int16), np.empty((rows, steps)))


class Plan(NamedTuple):
    """What a simulation needs, in compiled functions."""

    world: WorldHandle  # of unit 0
    state: Handle
    frozen: Handle  # the State of the last update, if `update_every` is not 0
    strides: NDArray[np.int64]  # (3,) bytes from the words of a unit to those of the next: world, State, last update
    rules: NDArray[np.int64]  # the words of `Rules`
    draw: int  # `Rules.draw`
    minimum: float  # probability of every arm, if `draw` is 0
    choose: int  # address of `deployed_arm`; 0 if the policy is not a `Deployed` one: it decides alone
    update_every: int  # decisions between two updates of the State that decides; 0: it is the State itself
    warm_up: int
    needs_means: bool  # whether the policy uses the true means
    is_plain: bool  # whether nothing happens between learning a reward and choosing the next arm
    probabilities: Floats  # (units, arms) of the last decision of a `Deployed` policy
    available: NDArray[np.bool_]  # (arms,) all
    segments: Segments  # of the State's words
    checked: Segments  # those that are searched for nan
    world_blocks: NDArray[np.int64]  # (3,) addresses of the world's block and of its start, and its length in words
    state_blocks: NDArray[np.int64]  # the same of the State
    seed: int
    first: int  # the first trial; of a cohort, its number
    times: NDArray[np.int64]  # steps at which regret is summed; of a cohort, the first step
    sums: Floats  # (trials, times)
    trace: Trace


@inline
def unit_of(plan: Plan, unit: int) -> tuple[WorldHandle, Handle, Handle]:
    """Return the handles of a unit."""
    words = plan.world.words + unit * plan.strides[0]
    world = WorldHandle(plan.world.entry, words, plan.world.arms, plan.world.means, plan.world.context)
    state = Handle(plan.state.entry, plan.state.reports, plan.state.words + unit * plan.strides[1])
    frozen = Handle(plan.frozen.entry, plan.frozen.reports, plan.frozen.words + unit * plan.strides[2])
    return world, state, frozen


def deployed_arm(address: int, unit: int, bits: int, key: np.uint64, t: int) -> int:
    """Learn if an update is due; return the arm of step t of a plan's unit, as an agent would choose it.

    It is compiled where a `Deployed` policy is simulated.
    """
    plan = plan_at(address)
    _, state, frozen = unit_of(plan, unit)
    after, every = t - plan.warm_up, plan.update_every
    if every > 0 and after >= 0 and after % every == 0:
        for i in range(plan.segments.shape[0]):
            word = plan.segments[i, 0]
            target, source = words_at(frozen.words, word + 1), words_at(state.words, word + 1)
            copy_words(target[word], source[word], plan.segments[i, 1])
    decides, out = frozen if every > 0 else state, plan.probabilities[unit]
    if plan.draw == 0:
        arm, _ = draw_plain_arm(decides, plan.minimum, t, bits_at(bits, 3), key, plan.available, out)
    else:
        words = plan.rules.ctypes.data
        arm, _ = drawn_arm(plan.draw, words, decides, t, bits_at(bits, 3), key, plan.available, out)
    return arm


_int = types.int64
_SIGNATURE = _int(_int, _int, _int, types.uint64, _int)
_call = caller(_int, *_SIGNATURE.args)


@cache
def deployed_address() -> int:
    """Return the address of `deployed_arm`, which is compiled if it was not yet."""
    return entry_address("simulations of deployed policies", deployed_arm, _SIGNATURE)


@inner
def choose_arm(address: int, plan: Plan, unit: int, trial: int, t: int, bits: Bits) -> int:
    """Return the arm of step t of a trial."""
    world, state, frozen = unit_of(plan, unit)
    if plan.needs_means:
        set_true_means(state, true_means(world))
    if world.context >= 0:
        set_context(state, world_context(world))
        if plan.update_every > 0:
            set_context(frozen, world_context(world))
    seed_bits(bits, random_bits(stream(plan.seed, trial, POLICY), t))
    if plan.choose != 0:
        arm: int = _call(plan.choose, (address, unit, bits.ctypes.data, stream(plan.seed, trial, EXPLORATION), t))
        return arm
    return act(state, bits)


@inner
def run_steps(
    address: int, plan: Plan, unit: int, trial: int, first: int, regret: Floats, arms: Arms, rewards: Floats
) -> None:
    """Simulate steps first, first + 1, … of a trial, one for each element of `regret`."""
    world, state, _ = unit_of(plan, unit)
    world_stream, policy_stream = stream(plan.seed, trial, WORLD), stream(plan.seed, trial, POLICY)
    out, bits, last = np.empty(2), empty_bits(), regret.size - 1
    advance_world(world, world_stream, first, out)
    arm = choose_arm(address, plan, unit, trial, first, bits)
    for i in range(last + 1):
        if not 0 <= arm < world.arms:
            raise ValueError("a policy chose an arm that does not exist")
        t = first + i + 1
        reward = play(world, arm, world_stream, t if i < last else -1, out)
        regret[i], arms[i], rewards[i] = out[0], arm, reward
        if plan.is_plain and i < last and not math.isnan(reward):
            seed_bits(bits, random_bits(policy_stream, t))
            arm = update_and_act(state, arm, reward, bits)
            continue
        if math.isnan(reward):
            update_missing(state, arm)
        else:
            update(state, arm, reward)
        if i < last:
            arm = choose_arm(address, plan, unit, trial, t, bits)


@inline
def contains_nan(state: Handle, checked: Segments) -> bool:
    """Return whether one of these arrays of floats of a State contains nan."""
    for i in range(checked.shape[0]):
        word = checked[i, 0]
        if any_nan(floats_at(words_at(state.words, word + 1)[word], checked[i, 1])):
            return True
    return False


@kernel
def run_trials(address: int) -> None:
    """Simulate the trials of a plan, and write the regret of steps 0 … times[j] of trial first + i to sums[i, j].

    The trace has either one row for each trial, with a single time, or one row that is reused and as long as the
    longest interval between two times.
    """
    plan = plan_at(address)
    for row in range(plan.sums.shape[0]):
        copy_words(plan.world_blocks[0], plan.world_blocks[1], plan.world_blocks[2])
        copy_words(plan.state_blocks[0], plan.state_blocks[1], plan.state_blocks[2])
        trace_row, trial = min(row, plan.trace.regret.shape[0] - 1), plan.first + row
        begin_trial(plan.world, plan.seed, trial, np.empty(2))
        total, start = 0.0, 0
        for j in range(plan.times.size):
            stop = plan.times[j] + 1 - start
            regret, arms = plan.trace.regret[trace_row, :stop], plan.trace.arm[trace_row, :stop]
            run_steps(address, plan, 0, trial, start, regret, arms, plan.trace.reward[trace_row, :stop])
            for i in range(stop):
                total += regret[i]
            plan.sums[row, j], start = total, start + stop
        if contains_nan(plan.state, plan.checked) or (
            plan.update_every > 0 and contains_nan(plan.frozen, plan.checked)
        ):
            raise ArithmeticError("a policy's State contains nan")


@kernel
def run_cohort_steps(address: int) -> None:
    """Simulate steps times[0], … of cohort `first` of a plan; at each step the units decide and learn one by one.

    The trace has shape (units, steps).
    """
    plan = plan_at(address)
    units, steps = plan.trace.regret.shape
    for i in range(steps):
        t = plan.times[0] + i
        for unit in range(units):
            trial = plan.first * units + unit
            if t == 0:
                world, _, _ = unit_of(plan, unit)
                begin_trial(world, plan.seed, trial, np.empty(2))
            regret, arms = plan.trace.regret[unit, i : i + 1], plan.trace.arm[unit, i : i + 1]
            run_steps(address, plan, unit, trial, t, regret, arms, plan.trace.reward[unit, i : i + 1])


class Simulation:
    """A policy in a world, ready to be simulated. It is used by one thread at a time.

    Parameters
    ----------
    latent, state : NamedTuple
        The States of world and policy before the first step. They are copied.
    policy : Policy, optional
        If it is a `Deployed` one, its rules are applied.
    units : int, optional
        Units that learn together: they share the fields that the policy declares. By default units are independent.
    """

    def __init__(self, latent: Any, state: Any, policy: Policy | None = None, units: int | None = None) -> None:
        rules, every = deployment_of(policy, latent.means.size)
        self._worlds = Memory(latent, units or 1)
        self._states = Memory(state) if units is None else Memory(state, units, shared_fields)
        self._frozen = Memory(state, self._states.units if every else 0)
        self._initial = self._worlds.own[:1].copy(), self._states.own[:1].copy()
        self._rules, memories = rules, (self._worlds, self._states)
        blocks = [
            np.array([memory.own.ctypes.data, initial.ctypes.data, initial.size])
            for memory, initial in zip(memories, self._initial, strict=True)
        ]
        handle = Handle.of(self._states.state(), self._states.address(), reports=isinstance(policy, Deployed))
        world, needs_means = WorldHandle.of(self._worlds), has_implementation(set_true_means, type(state))
        self._plan = Plan(
            world=world,
            state=handle,
            frozen=handle._replace(words=self._frozen.address()),
            strides=np.array([each.words.strides[0] for each in (*memories, self._frozen)]),
            rules=words_of(rules),
            draw=rules.draw,
            minimum=rules.equal_minimum,
            choose=deployed_address() if isinstance(policy, Deployed) else 0,
            update_every=every,
            warm_up=rules.warm_up,
            needs_means=needs_means,
            is_plain=not (isinstance(policy, Deployed) or needs_means or world.context >= 0),
            probabilities=np.zeros((self._states.units, latent.means.size)),
            available=np.ones(latent.means.size, np.bool_),
            segments=self._states.segments,
            checked=self._states.checked,
            world_blocks=blocks[0],
            state_blocks=blocks[1],
            seed=0,
            first=0,
            times=np.zeros(1, np.int64),
            sums=np.zeros((0, 1)),
            trace=empty_trace(0, 1),
        )
        self._time = 0

    def run_trials(self, seed: int, first: int, times: NDArray[np.int64], sums: Floats, trace: Trace) -> None:
        """Simulate trials first, first + 1, … of single units; see the kernel."""
        self._run(run_trials, seed=seed, first=first, times=times, sums=sums, trace=trace)

    def run_cohort(self, seed: int, cohort: int, steps: int) -> Trace:
        """Simulate the next steps of a cohort and return their trace, of shape (units, steps)."""
        trace = empty_trace(self._states.units, steps)
        self._run(run_cohort_steps, seed=seed, first=cohort, times=np.array([self._time]), trace=trace)
        self._time += steps
        return trace

    def _run(self, function: Callable[[int], None], **changes: Any) -> None:
        """Call a kernel with a plan; raise IndexError if a user's function wrote outside the arrays of its State."""
        plan = self._plan._replace(**changes)
        words = words_of(plan)
        kinds = [type(memory.state()) for memory in (self._states, self._worlds)]
        with naming_own_functions(*kinds):
            function(words.ctypes.data)
        for memory, state in zip((self._states, self._worlds), kinds, strict=True):
            if not is_larl(state) and not memory.guards_are_intact():
                raise IndexError(f"a function of {state.__name__} wrote outside the arrays of this State")

    @property
    def probabilities(self) -> Floats:
        """The probabilities of the arms at the last decision of each unit of a `Deployed` policy, (units, arms)."""
        return self._plan.probabilities

    def stacked(self) -> Any:
        """Return the States of all units, with the unit as the first axis of arrays that are not shared."""
        return self._states.stacked()

    def new_unit(self) -> Any:
        """Return the State of a unit that joins the cohort now: what units share, and the start of everything else."""
        return self._states.state_in(self._initial[1][0], self._states.shared)


_numbers, _handle, _pairs = np.zeros(3, np.int64), Handle(0, 0, 0), np.zeros((1, 2), np.int64)
# An example of a plan decides the types of its fields.
plan_at = loader(
    kind_of(
        Plan(
            world=WorldHandle(0, 0, 0, 0, 0),
            state=_handle,
            frozen=_handle,
            strides=_numbers,
            rules=_numbers,
            draw=0,
            minimum=0.0,
            choose=0,
            update_every=0,
            warm_up=0,
            needs_means=False,
            is_plain=False,
            probabilities=np.zeros((1, 1)),
            available=np.ones(1, np.bool_),
            segments=_pairs,
            checked=_pairs,
            world_blocks=_numbers,
            state_blocks=_numbers,
            seed=0,
            first=0,
            times=_numbers,
            sums=np.zeros((1, 1)),
            trace=empty_trace(1, 1),
        )
    )
)
