"""On which terms a study runs: its arms, its policy, and what happens where there is no reward or no policy."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from larl._core.random import FALLBACK, bits_at, stream_key
from larl._core.validation import InvalidValue
from larl.live.agent import Agent
from larl.live.base import StreamKeys
from larl.live.cohort import Cohort
from larl.live.files import state_arrays
from larl.policies import from_dict
from larl.policies._pooling import pooled_state

STUDY_FIELDS = {"min_probability": "floor", "max_delay": "patience"}  # argument of Agent and Cohort: field of a study


@dataclass(frozen=True)
class Terms:
    """What a study was made with; `version` counts its policies."""

    study: str
    arms: tuple[str, ...]
    policy: Mapping[str, Any]
    seed: int
    floor: float = 0.0
    patience: int = 50
    pooling: str = "none"
    horizon: int | None = None
    default_reward: float | None = None  # what counts where none came within `patience`; None: it is missing
    fallback: tuple[float, ...] = ()  # probability of each arm where the policy fails
    registration: str = "first_decision"
    version: int = 1

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Terms":
        """What a study is asked to be made with, checked by making its first mind."""
        arms = tuple(values["arms"])
        given = values.get("fallback")
        if given is not None and (set(given) != set(arms) or abs(sum(given.values()) - 1.0) > 1e-9):
            raise InvalidValue("study", "fallback", given, "a probability for every arm, with sum 1")
        chances = tuple(given[arm] for arm in arms) if given else (1.0 / max(len(arms), 1),) * len(arms)
        seed = values.get("seed")
        known = {name: value for name, value in values.items() if name not in ("arms", "fallback", "seed")}
        terms = cls(arms=arms, fallback=chances, seed=secrets.randbits(62) if seed is None else seed, **known)
        terms.check_policy()
        return terms

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "Terms":
        """What `to_dict` wrote."""
        return cls(**dict(values) | {"arms": tuple(values["arms"]), "fallback": tuple(values["fallback"])})

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return asdict(self) | {"arms": list(self.arms), "fallback": list(self.fallback), "policy": dict(self.policy)}

    def changed(self, policy: Mapping[str, Any], floor: float | None) -> "Terms":
        """The same study with another policy."""
        terms = replace(self, policy=policy, version=self.version + 1, floor=self.floor if floor is None else floor)
        if terms.width != self.width:
            raise InvalidValue(
                "policy", "context", terms.width, f"{self.width}, as before: the policy learns from past contexts"
            )
        terms.check_policy()
        return terms

    def check_policy(self) -> None:
        """Refuse a policy that cannot decide on these terms, by making its first mind."""
        try:
            self.mind(0)
        except InvalidValue as error:
            if error.name in STUDY_FIELDS:
                raise InvalidValue(error.owner, STUDY_FIELDS[error.name], error.value, error.accepted) from error
            if error.name != "world":
                raise
            accepted = "a policy that learns from rewards alone; this one must know the world, as in a simulation"
            raise InvalidValue("study", "policy", self.policy["policy"], accepted) from error

    @property
    def pooled(self) -> bool:
        """Whether units learn together."""
        return self.pooling != "none"

    @cached_property
    def spec(self) -> Any:
        """The policy."""
        return from_dict(dict(self.policy))

    @cached_property
    def width(self) -> int:
        """How many numbers a context has."""
        return int(getattr(self.spec, "context", 0))

    @cached_property
    def _first_state(self) -> Mapping[str, Any]:
        """What the policy keeps of a unit before its first step, by name."""
        state = self.spec.init(len(self.arms), horizon=self.horizon, world=None)
        return state_arrays(pooled_state(self.spec, state, self.pooling))

    @cached_property
    def state_size(self) -> int:
        """Bytes of what the policy keeps of one unit. Of a fresh State: to ask a mind for its own lets it go on."""
        return sum(int(array.nbytes) for array in self._first_state.values())

    @cached_property
    def numbers(self) -> Callable[[Any], Sequence[Any]]:
        """Gives those arrays of the policy's State that hold numbers in the beginning, and so must always."""
        names = [name for name, array in self._first_state.items() if np.isfinite(array).all()]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda state: [attrgetter(name)(state) for name in names]

    def mind(self, number: int) -> Agent | Cohort:
        """What decides for unit `number`, or for all, before it has seen anything."""
        same: dict[str, Any] = {"min_probability": self.floor, "max_delay": self.patience, "horizon": self.horizon}
        if self.pooled:
            return Cohort(self.spec, self.arms, self.seed, pooling=self.pooling, **same)
        return Agent(self.spec, self.arms, self.seed, trial=number, **same)

    def check(self, available: Sequence[str] | None, context: Sequence[float] | None) -> None:
        """Refuse arms that there are not, and contexts that the policy cannot read."""
        for arm in available or ():
            if arm not in self.arms:
                raise InvalidValue("decision", "available", arm, f"some of {', '.join(self.arms)}")
        if len(context or ()) != self.width:
            accepted = f"{self.width} numbers" if self.width else "no context: the policy of this study reads none"
            raise InvalidValue("decision", "context", context, accepted)

    def decision_id(self, number: int, t: int) -> str:
        """The name of step t of unit `number`."""
        return f"{self.study}.{number}-{t}-{StreamKeys.of(self.seed, number).id_suffix(t)}"

    def fall_back(self, number: int, t: int, available: Sequence[str] | None) -> tuple[str, dict[str, float]]:
        """The arm of a step where the policy failed, and how likely each was."""
        open_arms = set(self.arms if available is None else available)
        shares = [share if arm in open_arms else 0.0 for arm, share in zip(self.arms, self.fallback, strict=True)]
        if sum(shares) <= 0.0:
            shares = [float(arm in open_arms) for arm in self.arms]
        odds = [share / sum(shares) for share in shares]
        word = int(bits_at(np.uint64(stream_key(self.seed, number, FALLBACK)), t))
        left = (word >> 11) * 2.0**-53
        chosen = max(arm for arm, chance in enumerate(odds) if chance > 0.0)
        for arm, chance in enumerate(odds):
            if chance > 0.0 and left < chance:
                chosen = arm
                break
            left -= chance
        return self.arms[chosen], dict(zip(self.arms, odds, strict=True))
