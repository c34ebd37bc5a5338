"""Configuration of a study: its arms, its policy, and what happens without a reward or without a policy."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cached_property
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from larl._core.validation import InvalidValue
from larl.live.agent import Agent
from larl.live.base import refuse_deployed
from larl.live.cohort import Cohort
from larl.live.files import state_arrays
from larl.policies import from_dict
from larl.policies._allocation import as_allocation
from larl.policies._deployment import DEFAULTS, Deployment
from larl.policies._pooling import pooled_state
from larl.service.core.state_limit import check_state_size
from larl.service.core.streams import KeyedStreams, SeededStreams, StudyStreams

# Settings that a response and the journal leave out if they have these values, as those of earlier versions do.
LEFT_OUT: dict[str, Any] = DEFAULTS | {"time_zone": "UTC"}


@dataclass(frozen=True)
class StudyConfig:
    """Configuration of a study; `version` counts its policies."""

    study: str
    arms: tuple[str, ...]
    policy: Mapping[str, Any]
    seed: int
    min_probability: float | Mapping[str, float] = 0.0  # of every available arm, or by arm
    max_delay: int = 50
    pooling: str = "none"
    horizon: int | None = None
    default_reward: float | None = None  # used if no reward came within `max_delay`; None: the reward is missing
    fallback: tuple[float, ...] = ()  # probability of each arm if the policy fails
    registration: str = "first_decision"
    version: int = 1
    allocation: str | Mapping[str, Any] = "ucb"
    update_every: int | str | None = None
    warm_up: int = 0
    warm_up_probabilities: Mapping[str, float] | None = None
    time_zone: str = "UTC"  # in which a day of `update_every = "night"` begins
    secret: bytes | None = field(default=None, repr=False)  # of the random bits; no response may contain it

    @classmethod
    def create(cls, values: Mapping[str, Any], *, limit_state: bool = True) -> "StudyConfig":
        """Return the configuration that a request asks for; raise InvalidValue if no agent can be created with it.

        Without `limit_state`, the policy may be of any size, as in journals of earlier versions.
        """
        arms, given, seed = tuple(values["arms"]), values.get("fallback"), values.get("seed")
        if given is not None and (set(given) != set(arms) or abs(sum(given.values()) - 1.0) > 1e-9):
            raise InvalidValue("study", "fallback", given, "a probability for every arm, with sum 1")
        fallback = tuple(given[arm] for arm in arms) if given else (1.0 / max(len(arms), 1),) * len(arms)
        others = {name: value for name, value in values.items() if name not in ("arms", "fallback", "seed")}
        others = {name: value for name, value in others.items() if value is not None or name not in LEFT_OUT}
        config = cls(arms=arms, fallback=fallback, seed=secrets.randbits(62) if seed is None else seed, **others)
        config = replace(config, allocation=_complete(config.allocation))
        if config.is_nightly or config.time_zone != "UTC":
            config.check_time_zone()
        config.check_policy(limit_state)
        return config

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], secret: bytes | None) -> "StudyConfig":
        """Return what `to_dict` wrote, with the secret."""
        lists = {"arms": tuple(values["arms"]), "fallback": tuple(values["fallback"])}
        return cls(**dict(values) | lists, secret=secret)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as JSON types, without the secret."""
        values = {name: getattr(self, name) for name in SETTINGS}
        values = {name: value for name, value in values.items() if name not in LEFT_OUT or value != LEFT_OUT[name]}
        return values | {"arms": list(self.arms), "fallback": list(self.fallback), "policy": dict(self.policy)}

    def with_policy(
        self,
        policy: Mapping[str, Any],
        min_probability: float | Mapping[str, float] | None,
        allocation: str | Mapping[str, Any] | None = None,
        *,
        limit_state: bool = True,
    ) -> "StudyConfig":
        """Return the next version, with another policy."""
        complete = None if allocation is None else _complete(allocation)
        given = {"min_probability": min_probability, "allocation": complete}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        config = replace(self, policy=policy, version=self.version + 1, **changes)
        if config.context_size != self.context_size:
            accepted = f"{self.context_size}, as before: the policy learns from past contexts"
            raise InvalidValue("policy", "context", config.context_size, accepted)
        config.check_policy(limit_state)
        return config

    def check_state_size(self) -> None:
        """Raise InvalidValue if the policy's State is too large for a new study."""
        check_state_size(self.policy, len(self.arms), self.horizon, self.pooling)

    def check_time_zone(self) -> None:
        """Raise InvalidValue unless the time zone is known."""
        try:
            ZoneInfo(self.time_zone)
        except (LookupError, OSError, ValueError) as error:
            accepted = "the name of a time zone, such as Europe/Berlin"
            raise InvalidValue("study", "time_zone", self.time_zone, accepted) from error

    def day(self, at: str) -> date | None:
        """Return the date of a time where the study is, None if the study does not need it."""
        return datetime.fromisoformat(at).astimezone(ZoneInfo(self.time_zone)).date() if self.is_nightly else None

    @property
    def is_nightly(self) -> bool:
        """Whether units learn at the first decision of a day."""
        return self.update_every == "night"

    @property
    def is_plain(self) -> bool:
        """Whether the policy itself decides, with one minimum probability for all arms."""
        return Deployment.create("study", **self._deployment).is_plain

    @property
    def _deployment(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(Deployment)}

    def check_policy(self, limit_state: bool) -> None:
        """Raise InvalidValue if the policy cannot decide in this study."""
        refuse_deployed("study", self.spec)
        if limit_state:
            self.check_state_size()
        try:
            self.new_agent(0)
        except InvalidValue as error:
            if error.name != "world":
                raise
            accepted = "a policy that learns from rewards alone; this one must know the world, as in a simulation"
            raise InvalidValue("study", "policy", self.policy["policy"], accepted) from error

    @property
    def is_pooled(self) -> bool:
        """Whether the units share one agent, a cohort."""
        return self.pooling != "none"

    @cached_property
    def streams(self) -> StudyStreams:
        """The random bits of the study."""
        return SeededStreams(self.seed) if self.secret is None else KeyedStreams(self.secret, self.seed)

    @cached_property
    def spec(self) -> Any:
        """The policy."""
        return from_dict(dict(self.policy))

    @cached_property
    def context_size(self) -> int:
        """Length of a context."""
        return int(getattr(self.spec, "context", 0))

    @cached_property
    def _first_state(self) -> Mapping[str, Any]:
        """Arrays of the policy's State of a unit before its first step, by name."""
        state = self.spec.init(len(self.arms), horizon=self.horizon, world=None)
        return state_arrays(pooled_state(self.spec, state, self.pooling))

    @cached_property
    def state_size(self) -> int:
        """Bytes of the State of one unit. Of a new State: reading an agent's own makes it replay late rewards."""
        return sum(int(array.nbytes) for array in self._first_state.values())

    @cached_property
    def finite_arrays(self) -> Callable[[Any], Sequence[Any]]:
        """A function that returns those arrays of a State that are finite at first, and must stay so."""
        names = [name for name, array in self._first_state.items() if np.isfinite(array).all()]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda state: [attrgetter(name)(state) for name in names]

    def new_agent(self, number: int) -> Agent | Cohort:
        """Return a new agent for unit `number`, or the cohort of all units."""
        same: dict[str, Any] = self._deployment | {"max_delay": self.max_delay, "horizon": self.horizon}
        agent: Agent | Cohort
        if self.is_pooled:
            agent = Cohort(self.spec, self.arms, self.seed, pooling=self.pooling, **same)
        else:
            agent = Agent(self.spec, self.arms, self.seed, trial=number, **same)
        agent.use_streams(self.streams)
        return agent

    def check_decision(self, available: Sequence[str] | None, context: Sequence[float] | None) -> None:
        """Raise InvalidValue for unknown arms and for a context of another length."""
        for arm in available or ():
            if arm not in self.arms:
                raise InvalidValue("decision", "available", arm, f"some of {', '.join(self.arms)}")
        if len(context or ()) != self.context_size:
            size = self.context_size
            accepted = f"{size} numbers" if size else "no context: the policy of this study uses none"
            raise InvalidValue("decision", "context", context, accepted)

    def check_arm(self, arm: str | None, note: str = "") -> None:
        """Raise InvalidValue unless the study has this arm."""
        if arm not in self.arms:
            raise InvalidValue("study", "arm", arm, f"one of {', '.join(self.arms)}{note}")

    def check_probabilities(self, probabilities: Mapping[str, float] | None) -> dict[str, float]:
        """Return the probabilities of an external decision, none if they are not known; raise InvalidValue."""
        if not probabilities:
            return {}
        if set(probabilities) != set(self.arms) or abs(sum(probabilities.values()) - 1.0) > 1e-6:
            accepted = "one for every arm, with sum 1; or null, if they are not known"
            raise InvalidValue("decision", "probabilities", probabilities, accepted)
        return dict(probabilities)

    def decision_id(self, number: int, t: int) -> str:
        """Return the id of step t of unit `number`."""
        return f"{self.study}.{number}-{t}-{self.streams(number).id_suffix(t)}"

    def draw_fallback(self, number: int, t: int, available: Sequence[str] | None) -> tuple[str, dict[str, float]]:
        """Draw an arm with the fallback probabilities; return it and the probability of every arm."""
        open_arms = set(self.arms if available is None else available)
        shares = [share if arm in open_arms else 0.0 for arm, share in zip(self.arms, self.fallback, strict=True)]
        if sum(shares) <= 0.0:
            shares = [float(arm in open_arms) for arm in self.arms]
        probabilities = [share / sum(shares) for share in shares]
        left = (self.streams.fallback(number, t) >> 11) * 2.0**-53
        chosen = max(arm for arm, probability in enumerate(probabilities) if probability > 0.0)
        for arm, probability in enumerate(probabilities):
            if probability > 0.0 and left < probability:
                chosen = arm
                break
            left -= probability
        return self.arms[chosen], dict(zip(self.arms, probabilities, strict=True))


def _complete(allocation: Any) -> Any:
    """Return an allocation as JSON type, with all its fields."""
    return as_allocation("study", "allocation", allocation).to_json_type()


SETTINGS = [each.name for each in fields(StudyConfig) if each.name != "secret"]  # that users see
