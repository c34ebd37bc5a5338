"""What an agent and a cohort have in common: terms that are checked, arms by name, a choice, how a reward was taken."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import compiled_for, copy_fields, fields_nan
from larl._core.random import FLOOR, IDS, POLICY, bits_at, stream_key
from larl._core.validation import InvalidValue, integer, number
from larl.live.kernels import choose
from larl.policies import DynamicOracle, Policy, from_dict
from larl.policies._contract import has_law
from larl.worlds.base import World
from larl.worlds.variants import from_dict as world_from_dict

MOST_ARMS = 10_000
COUNTS = ("learnt", "repaired", "corrected", "repeated", "missing", "late")
_finite = number()


class PolicyError(ArithmeticError):
    """A policy that cannot decide: its State, its probabilities or its forecast is not finite or not valid."""


class Decision(NamedTuple):
    """What an agent decided, and why."""

    id: str
    t: int
    arm: str | None  # None where no arm was available
    probabilities: dict[str, float]  # of every arm, exact
    expected: float | None  # what the policy expects of the arm; None where it has no opinion
    width: float | None  # what it adds for what it does not know
    explored: bool  # the min_probability chose, not the policy
    unit: str | None = None  # of a cohort, for whom it was decided

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return self._asdict()


class Streams(NamedTuple):
    """The keys of one unit's words."""

    policy: np.uint64
    coin: np.uint64
    ids: np.uint64

    @classmethod
    def of(cls, seed: int, trial: int) -> "Streams":
        return cls(*(np.uint64(stream_key(seed, trial, name)) for name in (POLICY, FLOOR, IDS)))

    def name(self, t: int) -> str:
        """Sixteen hex digits that stand for step t."""
        return f"{int(bits_at(self.ids, t)):016x}"


class Live:
    """A policy on terms: arms, seed, min_probability, max_delay, horizon and world."""

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int,
        min_probability: float,
        max_delay: int,
        horizon: int | None,
        world: World | None,
    ) -> None:
        owner = self._owner = type(self).__name__
        if not isinstance(policy, Policy):
            raise InvalidValue(owner, "policy", policy, "a larl policy, such as larl.LARL(s=5)")
        if isinstance(policy, DynamicOracle):
            raise InvalidValue(owner, "policy", policy, "a policy that is not shown the true means: only the lab can")
        self.policy, self.arms = policy, _names(owner, arms)
        self.seed = integer(0, 2**63 - 1)(owner, "seed", seed)
        self.min_probability = number(0.0, 1.0 / len(self.arms))(owner, "min_probability", min_probability)
        self.max_delay = integer(1, 10**6)(owner, "max_delay", max_delay)
        self.horizon, self.world = horizon, world
        self.counts = dict.fromkeys(COUNTS, 0)  # how rewards came
        self._place = {name: arm for arm, name in enumerate(self.arms)}
        self._width = int(getattr(policy, "context", 0))
        self._all = np.ones(len(self.arms), dtype=np.bool_)
        self._probabilities, self._notes, self._no_context = np.zeros(len(self.arms)), np.zeros(3), np.zeros(0)

    def _fresh(self) -> Any:
        """The policy's State before the first step."""
        state = copy_fields(self.policy.init(len(self.arms), horizon=self.horizon, world=self.world))
        if not has_law(state):
            accepted = (
                "a policy that says how likely its choices are: registered with predict= or action_probabilities="
            )
            raise InvalidValue(self._owner, "policy", self.policy, accepted)
        return state

    def _bind(self, state: Any) -> None:
        """Find the machine code that chooses with such States."""
        key = np.uint64(0)
        self._choose = compiled_for(
            choose, state, self._no_context, key, key, 0, 0.5, self._all, self._probabilities, self._notes
        )

    def _chosen(self, state: Any, streams: Streams, t: int, shown: Any, can: Any) -> tuple[int, dict[str, Any]]:
        """The arm of step t, and what a Decision says of it."""
        notes = self._notes
        try:
            arm = self._choose(
                state, shown, streams.policy, streams.coin, t, self.min_probability, can, self._probabilities, notes
            )
        except ArithmeticError as error:
            raise PolicyError(f"{self.policy} cannot decide: {error}") from None
        expected, width, explored = notes.tolist()
        return arm, {
            "arm": self.arms[arm],
            "probabilities": dict(zip(self.arms, self._probabilities.tolist(), strict=True)),
            "expected": None if math.isnan(expected) else expected,
            "width": width if math.isfinite(width) else None,
            "explored": explored > 0.0,
        }

    def _refuse_nan(self, *states: Any) -> None:
        """Raise PolicyError if some number of these States is nan."""
        if any(map(fields_nan, states)):
            raise PolicyError(f"{self.policy} has failed: its State has numbers that are nan, and is not saved")

    def _nothing(self) -> dict[str, Any]:
        """What a Decision says where no arm was available."""
        none = dict.fromkeys(self.arms, 0.0)
        return {"arm": None, "probabilities": none, "expected": None, "width": None, "explored": False}

    def _told(self, reward: Any, arm: Any) -> tuple[float, int | None]:
        """A reward, nan where there is none, and the arm that was played, if that was said."""
        if isinstance(reward, bool | np.bool_):
            reward = float(reward)
        value = math.nan if reward is None else _finite("observe", "reward", reward)
        return value, None if arm is None else self._arm("observe", arm)

    def _take(self, past: Any, step: int, value: float, told: int | None, t: int) -> str:
        """Let the past know what came of a step of it, which its unit calls t; returns how it was taken."""
        known, before, pending = past.known(step)
        played = known if told is None else told
        if played < 0 and not math.isnan(value):
            raise InvalidValue("observe", "arm", None, f"one of {', '.join(self.arms)}: none was available at step {t}")
        same = played == known and (before == value or (math.isnan(before) and math.isnan(value)))
        in_time = step == past.time
        past.set(step, played, value)
        if same and not pending:
            return self._count("repeated")
        if not pending:
            return self._count("corrected")
        return self._count("missing" if math.isnan(value) else "learnt" if in_time else "repaired")

    def _count(self, how: str) -> str:
        self.counts[how] += 1
        return how

    def _arm(self, owner: str, name: Any) -> int:
        if not isinstance(name, str) or name not in self._place:
            raise InvalidValue(owner, "arm", name, f"one of {', '.join(self.arms)}")
        return self._place[name]

    def _mask(self, available: Sequence[str] | None) -> Any:
        if available is None:
            return self._all
        if isinstance(available, str) or not isinstance(available, Sequence):
            raise InvalidValue("decide", "available", available, f"a list of some of {', '.join(self.arms)}")
        mask = np.zeros(len(self.arms), dtype=np.bool_)
        for name in available:
            mask[self._arm("decide", name)] = True
        return mask

    def _context(self, context: Sequence[float] | None) -> Any:
        if context is None and self._width == 0:
            return self._no_context
        values = [] if context is None else [_finite("decide", f"context[{i}]", x) for i, x in enumerate(context)]
        if len(values) != self._width:
            accepted = (
                f"{self._width} numbers, as {self.policy} asks for" if self._width else f"none: {self.policy} has none"
            )
            raise InvalidValue("decide", "context", context, accepted)
        return np.array(values, dtype=float)

    def _terms(self) -> dict[str, Any]:
        """What it was made with, as JSON types."""
        return {
            "policy": self.policy.to_dict(),
            "arms": list(self.arms),
            "seed": self.seed,
            "min_probability": self.min_probability,
            "max_delay": self.max_delay,
            "horizon": self.horizon,
            "world": None if self.world is None else self.world.to_dict(),
        }


def terms_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What `Live._terms` wrote, as arguments."""
    world = values["world"]
    plain = {name: values[name] for name in ("arms", "seed", "min_probability", "max_delay", "horizon")}
    read = {"policy": from_dict(values["policy"]), "world": None if world is None else world_from_dict(world)}
    return plain | read


def _names(owner: str, arms: Any) -> tuple[str, ...]:
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        return tuple(str(arm) for arm in range(integer(2, MOST_ARMS)(owner, "arms", arms)))
    names = tuple(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else ()
    if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise InvalidValue(owner, "arms", arms, "two or more different names, or how many there are")
    return names
