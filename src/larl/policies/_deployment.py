"""How a policy is used in a trial: allocation, minimum probabilities, scheduled learning and a warm-up.

Agents, cohorts and `Deployed` policies in simulations check their settings and draw their arms here, so a live step
equals a simulated one bit for bit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types

from larl._core.compile import inline, inner
from larl._core.entries import entry_address
from larl._core.random import Bits, bits_to_uniform, random_bits, uniform
from larl._core.states import bits_at, caller, floats_at, kind_of, loader, mask_at
from larl._core.validation import InvalidValue, check_fields, checked, integer, number
from larl.policies._allocation import (
    OWN,
    Allocation,
    AllocationRule,
    allocation_probabilities,
    allocation_rule,
    as_allocation,
)
from larl.policies._bounds import MAX_STEPS
from larl.policies._contract import Policy, act, action_probabilities
from larl.policies._entry import Handle
from larl.policies._probabilities import Floats, Mask, forced_arm, sample_arm, uniform_probabilities

Shares = tuple[tuple[str, float], ...]  # arms and their probabilities
ROUNDING = 1e-9  # by which a sum of probabilities may differ from 1


def shares(owner: str, name: str, value: Any) -> Shares:
    """Check that a value is a mapping from arms to probabilities whose sum is at most 1."""
    pairs = value if isinstance(value, Mapping) else dict(value) if _is_pairs(value) else None
    if not pairs or not all(isinstance(arm, str) for arm in pairs):
        raise InvalidValue(owner, name, value, "a mapping from names of arms to probabilities")
    result = tuple((arm, number(0.0, 1.0)(owner, f"{name}[{arm!r}]", each)) for arm, each in pairs.items())
    if sum(each for _, each in result) > 1.0 + ROUNDING:
        raise InvalidValue(owner, name, dict(result), "probabilities with a sum of at most 1")
    return result


def _is_pairs(value: Any) -> bool:
    """Return whether a value is one that `shares` has returned."""
    return isinstance(value, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value)


def minimum_probability(owner: str, name: str, value: Any) -> float | Shares:
    """Check that a value is the minimum probability of every arm, or a mapping from arms to theirs."""
    if isinstance(value, Mapping | tuple):
        return shares(owner, name, value)
    result: float = number(0.0, 1.0)(owner, name, value)
    return result


def schedule(owner: str, name: str, value: Any) -> int | str | None:
    """Check that a value is a number of decisions, "night" or None."""
    if value is None or value == "night":
        return value
    try:
        return int(integer(1, MAX_STEPS)(owner, name, value))
    except InvalidValue as error:
        accepted = "a whole number of decisions ≥ 1, 'night', or None to learn at every decision"
        raise InvalidValue(owner, name, value, accepted) from error


def optional_shares(owner: str, name: str, value: Any) -> Shares | None:
    """Check that a value is None or a mapping from arms to probabilities with the sum 1."""
    if value is None:
        return None
    result = shares(owner, name, value)
    if sum(each for _, each in result) < 1.0 - ROUNDING:
        raise InvalidValue(owner, name, dict(result), "probabilities with the sum 1; or None for equal ones")
    return result


class Rules(NamedTuple):
    """A deployment in a kernel."""

    allocation: AllocationRule
    draw: int  # address of `draw_entry`; 0 if the policy itself decides, with one minimum probability for all arms
    equal_minimum: float  # minimum probability of every available arm; −1: `minimum` has them
    minimum: Floats  # (arms,)
    warm_up: int
    warm_up_shares: Floats  # (arms,)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Settings of a policy's use in a trial; `larl.Agent` describes them."""

    allocation: Allocation | str | Mapping[str, Any] = checked(as_allocation, Allocation())  # checked: an Allocation
    min_probability: float | Mapping[str, float] | Shares = checked(minimum_probability, 0.0)  # a number or Shares
    update_every: int | str | None = checked(schedule, None)
    warm_up: int = checked(integer(0, MAX_STEPS), 0)
    warm_up_probabilities: Mapping[str, float] | Shares | None = checked(optional_shares, None)  # Shares or None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def checked_allocation(self) -> Allocation:
        """The allocation with all its parameters."""
        return as_allocation("Deployment", "allocation", self.allocation)

    @classmethod
    def create(cls, owner: str, **values: Any) -> Self:
        """Return a deployment; the errors of its values name `owner`."""
        checks = {item.name: item.metadata["check"] for item in fields(Deployment)}
        return cls(**{name: checks[name](owner, name, value) for name, value in values.items()})

    @property
    def is_plain(self) -> bool:
        """Whether the policy itself decides, with one minimum probability for all arms."""
        is_equal = not isinstance(self.min_probability, tuple)
        return self.checked_allocation.kind == "ucb" and is_equal and self.warm_up == 0

    def minimum_to_json_type(self) -> float | dict[str, float]:
        """Return the minimum probability as a JSON type."""
        least = self.min_probability
        return float(least) if isinstance(least, int | float) else dict(least)

    def settings(self) -> dict[str, Any]:
        """Return all settings that are not the default, except `min_probability`, as JSON types."""
        given = self.warm_up_probabilities
        values = {
            "allocation": self.checked_allocation.to_json_type(),
            "update_every": self.update_every,
            "warm_up": self.warm_up,
            "warm_up_probabilities": None if given is None else dict(given),
        }
        return {name: value for name, value in values.items() if value != DEFAULTS[name]}

    def rules(self, owner: str, policy: Policy, arms: Sequence[str]) -> Rules:
        """Return the rules for a policy and named arms; raise InvalidValue if they do not fit together."""
        least, count = self.min_probability, len(arms)
        equal = -1.0 if isinstance(least, tuple) else number(0.0, 1.0 / count)(owner, "min_probability", least)
        minimum = np.full(count, equal) if equal >= 0.0 else _by_arm(owner, "min_probability", least, arms)
        given, warm_up_shares = self.warm_up_probabilities, np.full(count, 1.0 / count)
        if given is not None:
            warm_up_shares = _by_arm(owner, "warm_up_probabilities", given, arms)
        if self.warm_up > 0 and (warm_up_shares < minimum - ROUNDING).any():
            below = {arm: float(share) for arm, share in zip(arms, warm_up_shares, strict=True)}
            accepted = "probabilities that are not below min_probability"
            raise InvalidValue(owner, "warm_up_probabilities", below, accepted)
        if given is not None and self.warm_up == 0:
            raise InvalidValue(owner, "warm_up_probabilities", dict(given), "None, or warm_up ≥ 1")
        rule = allocation_rule(owner, policy, count, self.checked_allocation)
        draw = 0 if self.is_plain else draw_address()
        return Rules(rule, draw, equal, minimum, self.warm_up, warm_up_shares / warm_up_shares.sum())


DEFAULTS = {"allocation": "ucb", "update_every": None, "warm_up": 0, "warm_up_probabilities": None}


def _by_arm(owner: str, name: str, given: Any, arms: Sequence[str]) -> Floats:
    """Return the probability of every arm, 0 where none is given; raise InvalidValue for an unknown arm."""
    result = np.zeros(len(arms))
    for arm, share in given:
        if arm not in arms:
            raise InvalidValue(owner, name, arm, f"only the arms {', '.join(arms)}")
        result[arms.index(arm)] = share
    return result


@inline
def minimum_total(rules: Rules, available: Mask, count: int) -> float:
    """Return the sum of the minimum probabilities of the available arms, whose number is `count`."""
    if rules.equal_minimum >= 0.0:
        return count * rules.equal_minimum
    total = 0.0
    for arm in range(available.size):
        total += rules.minimum[arm] if available[arm] else 0.0
    return min(total, 1.0)


@inline
def explored_arm(u: float, rules: Rules, available: Mask, count: int) -> int:
    """Return the arm that a minimum probability forces, for u in [0, 1); −1 if it forces none."""
    if rules.equal_minimum >= 0.0:
        return forced_arm(u, rules.equal_minimum, available, count)
    for arm in range(available.size):
        if available[arm]:
            u -= rules.minimum[arm]
            if u < 0.0:
                return arm
    return -1


@inner
def warm_up_probabilities(rules: Rules, available: Mask, probabilities: Floats) -> None:
    """Write the probabilities of the warm-up: those of the available arms, in proportion."""
    total = 0.0
    for arm in range(available.size):
        total += rules.warm_up_shares[arm] if available[arm] else 0.0
    if total > 0.0:
        for arm in range(available.size):
            probabilities[arm] = rules.warm_up_shares[arm] / total if available[arm] else 0.0
    else:
        uniform_probabilities(available, probabilities)


@inner
def draw_arm(
    state: Handle, rules: Rules, t: int, bits: Bits, exploration_key: np.uint64, available: Mask, probabilities: Floats
) -> tuple[int, bool]:
    """Return the arm of step t, and whether a minimum probability forced it; write the probability of each arm.

    Raises ArithmeticError if the probabilities of the policy are invalid.
    """
    arms, count, total = available.size, 0, 0.0
    for arm in range(arms):
        count += available[arm]
    if t < rules.warm_up:
        warm_up_probabilities(rules, available, probabilities)
        return sample_arm(uniform(bits), probabilities), False
    if rules.allocation.kind == OWN:
        action_probabilities(state, available, probabilities)
    else:
        allocation_probabilities(state, rules.allocation, available, probabilities)
    for arm in range(arms):
        total += probabilities[arm] if probabilities[arm] >= 0.0 else math.nan
    if not abs(total - 1.0) <= 1e-6:
        raise ArithmeticError("its probabilities are not in [0, 1], or do not sum to 1")
    chosen = explored_arm(bits_to_uniform(random_bits(exploration_key, t)), rules, available, count)
    is_forced = chosen >= 0
    if not is_forced and rules.allocation.kind == OWN and count == arms:
        chosen = act(state, bits)
    elif not is_forced:
        chosen = sample_arm(uniform(bits), probabilities)
    if not 0 <= chosen < arms:
        raise ValueError("a policy chose an arm that does not exist")
    rest = 1.0 - minimum_total(rules, available, count)
    for arm in range(arms):
        if available[arm]:
            probabilities[arm] = rules.minimum[arm] + rest * probabilities[arm]
    return chosen, is_forced


def draw_entry(
    words: int,
    entry: int,
    reports: int,
    state: int,
    t: int,
    key: np.uint64,
    bits: int,
    arms: int,
    available: int,
    out: int,
) -> int:
    """Draw the arm of step t by the rules at an address; return it, or −2 − arm if a minimum probability forced it.

    It is compiled where rules are used: it takes as long as all other code of an agent.
    """
    floats, mask = floats_at(out, arms), mask_at(available, arms)
    arm, is_forced = draw_arm(Handle(entry, reports, state), _rules_at(words), t, bits_at(bits, 3), key, mask, floats)
    return -2 - arm if is_forced else arm


_int = types.int64
_SIGNATURE = _int(_int, _int, _int, _int, _int, types.uint64, _int, _int, _int, _int)
_call = caller(_int, *_SIGNATURE.args)
_rules_at = loader(kind_of(Rules(AllocationRule(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0, 0.0, np.ones(2), 0, np.ones(2))))


@cache
def draw_address() -> int:
    """Return the address of `draw_entry`, which is compiled if it was not yet."""
    return entry_address("allocations, minimum probabilities and warm-up", draw_entry, _SIGNATURE)


@inline
def drawn_arm(
    draw: int, words: int, state: Handle, t: int, bits: Bits, key: np.uint64, available: Mask, probabilities: Floats
) -> tuple[int, bool]:
    """`draw_arm` by the rules whose words are at an address."""
    places = available.ctypes.data, probabilities.ctypes.data
    arm = _call(
        draw, (words, state.entry, state.reports, state.words, t, key, bits.ctypes.data, available.size, *places)
    )
    return (-2 - arm, True) if arm < -1 else (arm, False)


@inner
def draw_plain_arm(
    state: Handle, minimum: float, t: int, bits: Bits, key: np.uint64, available: Mask, probabilities: Floats
) -> tuple[int, bool]:
    """`draw_arm` of a policy that itself decides, with one minimum probability for all arms: the usual case."""
    arms, count, total = available.size, 0, 0.0
    action_probabilities(state, available, probabilities)
    for arm in range(arms):
        count += available[arm]
        total += probabilities[arm] if probabilities[arm] >= 0.0 else math.nan
    if not abs(total - 1.0) <= 1e-6:
        raise ArithmeticError("its probabilities are not in [0, 1], or do not sum to 1")
    chosen = forced_arm(bits_to_uniform(random_bits(key, t)), minimum, available, count)
    is_forced = chosen >= 0
    if not is_forced:
        chosen = act(state, bits) if count == arms else sample_arm(uniform(bits), probabilities)
    if not 0 <= chosen < arms:
        raise ValueError("a policy chose an arm that does not exist")
    for arm in range(arms):
        if available[arm]:
            probabilities[arm] = minimum + (1.0 - count * minimum) * probabilities[arm]
    return chosen, is_forced
