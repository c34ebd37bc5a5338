"""The common parts of `Agent` and `Cohort`: checked settings, named arms, choice of an arm, status of a reward."""

import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from math import isfinite
from struct import Struct
from typing import Any

import numpy as np

from larl._core.states import Memory, has_nan, words_of
from larl._core.validation import InvalidValue, Number, Vector, instance, integer, number, optional
from larl.live import kernels
from larl.live.decision import Decision, PolicyError, RewardStatus
from larl.live.history import Ints
from larl.live.log_checks import LogSizes, check_names
from larl.live.schedule import Schedule, Update
from larl.live.state_size import check_state_size, packed_length
from larl.live.streams import StreamKeys, Streams
from larl.policies import Auto, Deployed, DynamicOracle, KalmanOracle, Policy, from_dict
from larl.policies._bounds import MAX_STEPS
from larl.policies._contract import has_action_probabilities
from larl.policies._deployment import DEFAULTS, Deployment
from larl.policies._entry import Handle
from larl.policies._state_memory import checked_init
from larl.worlds.base import World
from larl.worlds.variants import Contextual
from larl.worlds.variants import from_dict as world_from_dict

MAX_ARMS = 10_000
COPIES = 2  # of a State that a new agent holds: the shared one and its own
_finite = number()
_read_results: Any = Struct("<ddqQq").unpack_from  # expected, width, explored, id, step
_results_at = 8 * kernels.EXPECTED
_new_tuple = tuple.__new__  # of a Decision: half the time of calling the class
Reward = Number | np.bool_  # what a reward can be, for type checkers
Minimum = float | Mapping[str, float]  # probability of every arm, or by arm


def refuse_deployed(owner: str, policy: Policy) -> None:
    """Raise InvalidValue for a `Deployed` policy."""
    if isinstance(policy, Deployed):
        accepted = "the policy that is deployed: allocation, update_every, … are settings beside the policy"
        raise InvalidValue(owner, "policy", policy, accepted)


def check_prior_arms(owner: str, policy: Policy, arms: Sequence[str]) -> None:
    """Raise InvalidValue if a policy has a prior of arms with other names, or in another order."""
    prior = policy.prior if isinstance(policy, Auto) else None
    if prior is not None and tuple(prior.arms) != tuple(arms):
        raise InvalidValue(owner, "arms", list(arms), f"those of the policy's prior: {list(prior.arms)}")


class LivePolicy:
    """A policy with its settings: arms, seed, deployment, max_delay, horizon and world."""

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int,
        max_delay: int,
        horizon: int | None,
        world: World | None,
        **deployment: Any,
    ) -> None:
        owner = self._owner = type(self).__name__
        instance(Policy, "a larl policy, such as larl.LARL(s=5)")(owner, "policy", policy)
        if isinstance(policy, DynamicOracle):
            raise InvalidValue(owner, "policy", policy, "a policy that does not need the true means")
        refuse_deployed(owner, policy)
        self.policy, self.arms = policy, arm_names(owner, arms)
        check_prior_arms(owner, policy, self.arms)
        if isinstance(policy, KalmanOracle) and isinstance(world, Contextual):
            raise InvalidValue(owner, "world", world, "a world without contexts: KalmanOracle has none in an agent")
        self.seed = integer(0, 2**63 - 1)(owner, "seed", seed)
        self._deployment = Deployment.create(owner, **deployment)
        self._rules = self._deployment.rules(owner, policy, self.arms)
        self.allocation = self._deployment.checked_allocation
        self.min_probability = self._deployment.minimum_to_json_type()
        self._schedule = Schedule(self._deployment.update_every, self._deployment.warm_up)
        self.max_delay = integer(1, 10**6)(owner, "max_delay", max_delay)
        self.horizon = optional(integer(1, MAX_STEPS))(owner, "horizon", horizon)
        self.world = world
        self.use_streams(partial(StreamKeys.of, self.seed))
        self.counts = {status.value: 0 for status in RewardStatus}  # reports of rewards by their status
        self._arm_index = {name: arm for arm, name in enumerate(self.arms)}
        self._context_size = int(getattr(policy, "context", 0))
        # What compiled functions read and write (kernels.py). The arrays must not be replaced.
        self._available, self._context = np.ones(len(self.arms), np.bool_), np.zeros(self._context_size)
        self._probabilities, self._rule_words = np.zeros(len(self.arms)), words_of(self._rules)
        self._read_probabilities: Any = Struct(f"<{len(self.arms)}d").unpack_from

    def use_streams(self, streams: Streams) -> None:
        """Take random bits and ids of decisions from other streams. They are not saved."""
        self._streams = cache(streams)

    def _initial_memory(self) -> Memory:
        """The policy's State before the first step, which must not be changed: other agents may have the same."""
        create = _shared_memory if self.world is None else _create_memory
        memory = create(self.policy, len(self.arms), self.horizon, self.world)
        if not has_action_probabilities(memory.state()):
            accepted = "a policy with action probabilities: registered with predict= or action_probabilities="
            raise InvalidValue(self._owner, "policy", self.policy, accepted)
        return memory

    def _new_record(self, memory: Memory) -> Ints:
        """A record for compiled functions, without a State and a log; `memory` has that of a new unit."""
        record, self._checked = np.zeros(kernels.RECORD_SIZE, np.int64), memory.checked
        record[kernels.ENTRY], record[kernels.REPORTS], _ = Handle.of(memory.state(), 0)
        record[kernels.RULES] = self._rule_words.ctypes.data
        record[kernels.ARMS], record[kernels.CONTEXT_SIZE] = len(self.arms), self._context_size
        record[kernels.CHECKED], record[kernels.CHECKED_SIZE] = self._checked.ctypes.data, len(self._checked)
        record[kernels.AVAILABLE], record[kernels.PROBABILITIES] = (
            array.ctypes.data for array in (self._available, self._probabilities)
        )
        record[kernels.CONTEXT], record[kernels.DRAW] = self._context.ctypes.data, self._rules.draw
        record.view(np.float64)[kernels.MINIMUM] = self._rules.equal_minimum
        return record

    def _set_streams(self, record: Ints, number: int, t: int) -> None:
        """Write the keys of the random bits of step t of a unit."""
        keys, streams = record.view(np.uint64), self._streams(number)
        keys[kernels.POLICY_KEY], keys[kernels.EXPLORATION_KEY] = streams.keys(t)
        if isinstance(streams, StreamKeys):
            keys[kernels.ID_KEY] = streams.ids

    def _set_choice(self, record: Ints, mask: Any, context: Any, update: Update | None) -> None:
        """Write what the next decision chooses from, and the State that decides."""
        self._available[:], self._context[:] = mask, context
        record[kernels.DECIDING] = record[kernels.STATE] if update is None else update.memory.address()

    def _refusal(self, error: ArithmeticError) -> PolicyError:
        """The error of a policy whose numbers are invalid."""
        return PolicyError(f"{self.policy} cannot decide: {error}")

    def _decision(self, record: Ints, arm: int, name: str | None = None, unit: str | None = None) -> Decision:
        """The Decision that a compiled function has written to a record; by default it has the id of an agent's."""
        expected, width, explored, id_bits, t = _read_results(record, _results_at)
        values = (
            name or f"{t}-{id_bits:016x}",
            t,
            self.arms[arm],
            dict(zip(self.arms, self._read_probabilities(self._probabilities))),  # noqa: B905  # as many as arms
            None if expected != expected else expected,
            width if isfinite(width) else None,
            explored == 1,
            unit,
        )
        return _new_tuple(Decision, values)

    def _refuse_nan(self, *states: Any) -> None:
        """Raise PolicyError if one of these States contains nan."""
        if any(map(has_nan, states)):
            raise PolicyError(f"{self.policy} cannot be saved: its State contains nan")

    def _unavailable_fields(self) -> dict[str, Any]:
        """The fields of a Decision without an available arm."""
        none = dict.fromkeys(self.arms, 0.0)
        return {"arm": None, "probabilities": none, "expected": None, "width": None, "explored": False}

    def _check_reward(self, reward: Any, arm: Any) -> tuple[float, int | None]:
        """The reward as a float (nan for None), and the index of the arm that was played, if it is given."""
        if isinstance(reward, bool | np.bool_):
            reward = float(reward)
        value = math.nan if reward is None else _finite("observe", "reward", reward)
        return value, None if arm is None else self._arm_number("observe", arm)

    def _set_reward(self, history: Any, step: int, value: float, arm: int | None, t: int) -> RewardStatus:
        """Write the reward of a step to a history; t is the unit's own number of the step."""
        old_arm, old_value, pending = history.recorded(step)
        played = old_arm if arm is None else arm
        if played < 0 and not math.isnan(value):
            raise InvalidValue("observe", "arm", None, f"one of {', '.join(self.arms)}: none was available at step {t}")
        is_same = played == old_arm and (old_value == value or (math.isnan(old_value) and math.isnan(value)))
        is_in_time = step == history.time
        history.set(step, played, value)
        if not pending:
            return self._count(RewardStatus.REPEATED if is_same else RewardStatus.CORRECTED)
        if math.isnan(value):
            return self._count(RewardStatus.MISSING)
        return self._count(RewardStatus.LEARNT if is_in_time else RewardStatus.REPAIRED)

    def _count(self, status: RewardStatus) -> RewardStatus:
        self.counts[status.value] += 1
        return status

    def _arm_number(self, owner: str, name: Any) -> int:
        """The index of an arm."""
        if not isinstance(name, str) or name not in self._arm_index:
            raise InvalidValue(owner, "arm", name, f"one of {', '.join(self.arms)}")
        return self._arm_index[name]

    def _available_mask(self, available: Sequence[str] | None) -> Any:
        """Whether each arm is available."""
        if available is None:
            return np.ones(len(self.arms), dtype=np.bool_)
        if isinstance(available, str) or not isinstance(available, Sequence):
            raise InvalidValue("decide", "available", available, f"a list of some of {', '.join(self.arms)}")
        mask = np.zeros(len(self.arms), dtype=np.bool_)
        for name in available:
            mask[self._arm_number("decide", name)] = True
        return mask

    def _check_context(self, context: Vector | None) -> Any:
        """The context as an array of the length that the policy needs."""
        if context is None and self._context_size == 0:
            return self._context
        if not (context is None or isinstance(context, Sequence | np.ndarray)) or isinstance(context, str):
            raise InvalidValue("decide", "context", context, f"a sequence of {self._context_size} numbers")
        values = [] if context is None else [_finite("decide", f"context[{i}]", x) for i, x in enumerate(context)]
        if len(values) != self._context_size:
            needed = f"{self._context_size} numbers, for {self.policy}"
            accepted = needed if self._context_size else f"none: {self.policy} uses no context"
            raise InvalidValue("decide", "context", context, accepted)
        return np.array(values, dtype=float)

    def _log_sizes(self) -> LogSizes:
        """What limits the logged steps of a unit."""
        return LogSizes(len(self.arms), self.max_delay, self._context_size)

    def _settings(self) -> dict[str, Any]:
        """The arguments of the constructor as JSON types."""
        return {
            "policy": self.policy.to_dict(),
            "arms": list(self.arms),
            "seed": self.seed,
            "min_probability": self.min_probability,
            "max_delay": self.max_delay,
            "horizon": self.horizon,
            "world": None if self.world is None else self.world.to_dict(),
            "deployment": self._deployment.settings() or None,
        }


def _create_memory(policy: Policy, arms: int, horizon: int | None, world: World | None) -> Memory:
    """Return the State before the first step; raise InvalidValue if it does not fit into memory."""
    return Memory(checked_init(policy, arms, horizon=horizon, world=world, copies=COPIES))


_shared_memory = lru_cache(maxsize=8)(_create_memory)


def read_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The output of `LivePolicy._settings` as arguments of the constructor."""
    plain = {name: values[name] for name in ("arms", "seed", "min_probability", "max_delay", "horizon")}
    given, world = values["policy"], values["world"]
    policy = given if isinstance(given, Policy) else from_dict(given)
    made_world = None if world is None else world_from_dict(world)
    arms, length = len(check_names("arms", values["arms"])), packed_length(values)
    refuse_deployed("file", policy)
    check_state_size(policy, arms, values["horizon"], made_world, length)
    given = values.get("deployment") or {}
    deployment = {name: given[name] for name in DEFAULTS if name in given}
    return plain | deployment | {"policy": policy, "world": made_world}


def arm_names(owner: str, arms: Any) -> tuple[str, ...]:
    """The names of the arms; "0", "1", … if `arms` is a number."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        return tuple(str(arm) for arm in range(integer(2, MAX_ARMS)(owner, "arms", arms)))
    names = tuple(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else ()
    if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise InvalidValue(owner, "arms", arms, "two or more different names, or the number of arms")
    return names
