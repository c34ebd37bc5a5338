"""A prior of Auto that was learnt from other units: its fields, and its file."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from larl._core.files import write_atomically
from larl._core.html import html_table
from larl._core.validation import (
    InvalidValue,
    check_fields,
    checked,
    covariance,
    instance,
    integer,
    known_fields,
    mapping,
    matrix,
    number,
    numbers,
    one_of,
    optional,
    path_like,
    required,
    spec,
)
from larl.policies.auto.prior_table import COLUMNS, describe, describe_rows

FORMAT = "larl.prior"
SCHEMA = 1
MAX_ORDER = 50  # of the latent state
MAX_COMPONENTS = 10
MAX_ERRORS = 1e4  # rewards that the prior of the shock variance can be worth: a larger number would drown the rewards
MAX_COORDINATE = 1e3
MIN_SPREAD, MAX_SPREAD = 1e-6, 1e3
MIN_EIGENVALUE = 1e-10  # of a new unit's correlation matrix
T = TypeVar("T")


@spec
class PriorComponent:
    """A normal distribution of the parameters of one unit, for latent states of one order.

    The coordinates are those of `larl.policies.auto.parameters`: ``order`` numbers atanh(partial autocorrelation), the
    size of β for each arm, the logarithm of the noise variance (of binary rewards, of a factor of all β), the logit of
    the share of the noise that grows with β², the logarithm of the start's sd relative to the stationary sd, and the
    logarithm of the levels' sd; sizes are in units of the latent shock.

    Parameters
    ----------
    order : int, 1 to 50
        Order of the latent state.
    weight : float, above 0, at most 1
        Prior probability of the component.
    mean : sequence of float, −1000 to 1000
        Mean of the coordinates in the population.
    mean_covariance : matrix
        Posterior covariance of that mean.
    spread : sequence of float, 1e-6 to 1000
        Standard deviation of each coordinate between units.
    level : sequence of float
        Expected level of each arm, in units of the rewards, up to a constant; in a binary model, exactly.
    same_sign : sequence of float
        Probability that an arm's β has the same sign as that of the first arm.
    errors : float, 0 to 10000
        Number of rewards that the prior of the shock variance is worth.
    shock_sd : float, >= 0
        Standard deviation of a latent shock in the population, in units of the rewards.
    """

    order: int = required(integer(1, MAX_ORDER))
    weight: float = required(number(0.0, 1.0, above=0.0))
    mean: tuple[float, ...] = required(numbers())
    mean_covariance: tuple[tuple[float, ...], ...] = required(matrix())
    spread: tuple[float, ...] = required(numbers())
    level: tuple[float, ...] = required(numbers(2))
    same_sign: tuple[float, ...] = required(numbers(2))
    errors: float = required(number(0.0, MAX_ERRORS))
    shock_sd: float = required(number(0.0))

    def __post_init__(self) -> None:
        check_fields(self)
        owner, arms = "PriorComponent", len(self.level)
        size = self.order + arms + 4
        cov = covariance(size)(owner, "mean_covariance", self.mean_covariance)
        object.__setattr__(self, "mean_covariance", cov)
        for name, length in (("mean", size), ("spread", size), ("same_sign", arms)):
            if len(getattr(self, name)) != length:
                raise InvalidValue(owner, name, getattr(self, name), f"{length} numbers, for {arms} arms")
        if max(map(abs, self.mean)) > MAX_COORDINATE:
            raise InvalidValue(owner, "mean", self.mean, f"numbers from -{MAX_COORDINATE:g} to {MAX_COORDINATE:g}")
        if not all(MIN_SPREAD <= each <= MAX_SPREAD for each in self.spread):
            raise InvalidValue(owner, "spread", self.spread, f"numbers from {MIN_SPREAD:g} to {MAX_SPREAD:g}")
        sd = np.sqrt(np.diag(self.covariance))
        if np.linalg.eigvalsh(self.covariance / np.outer(sd, sd)).min() < MIN_EIGENVALUE:
            accepted = "a matrix whose sum with the squares of spread on the diagonal is not nearly singular"
            raise InvalidValue(owner, "mean_covariance", self.mean_covariance, accepted)
        if not all(0.0 < share < 1.0 for share in self.same_sign):
            raise InvalidValue(owner, "same_sign", self.same_sign, "probabilities above 0 and below 1")
        if self.errors > 0.0 and self.shock_sd == 0.0:
            raise InvalidValue(owner, "shock_sd", self.shock_sd, "a number above 0, as errors is above 0")

    @property
    def covariance(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Covariance of the coordinates of a new unit."""
        return np.array(self.mean_covariance) + np.diag(np.square(self.spread))


@spec
class UnitSummary:
    """What a fit says about one unit that a prior was learnt from.

    Parameters
    ----------
    name : str
        Name of the unit.
    rewards : int, >= 2
        Number of its rewards.
    autocorrelation : float
        Autocorrelation of its latent state at lag 1.
    random_regret, floor : float, optional
        Regret per step of random choices, and the least that is possible with full information, for its fitted
        parameters with the population's levels, in units of the rewards; None for binary rewards.
    """

    name: str = required(instance(str, "a name"))
    rewards: int = required(integer(2))
    autocorrelation: float = required(number(-1.0, 1.0))
    random_regret: float | None = checked(optional(number(0.0)), None)
    floor: float | None = checked(optional(number(0.0)), None)

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.random_regret is None) != (self.floor is None):
            raise InvalidValue("UnitSummary", "floor", self.floor, "a number if random_regret is one, else None")


@spec
class Prior:
    """What earlier units show about a new one: returned by `larl.learn_prior`, used by ``larl.Auto(prior=…)``.

    ``print(prior)`` shows the population as a table. `save` and `load` use a small JSON file.

    Parameters
    ----------
    arms : sequence of str
        Names of the arms, in the order of the policy.
    rewards : "continuous" or "binary"
        Model of the rewards.
    units : int, >= 1
        Number of units that it was learnt from.
    steps : int, >= 1
        Number of their rewards.
    components : sequence of PriorComponent, 1 to 10
        Distributions of a unit's parameters, each of another order; their weights sum to 1.
    unit_summaries : sequence of UnitSummary, default ()
        The units that it was learnt from, for `larl.priors.write_page`. Policies do not keep them.

    Examples
    --------
    >>> import larl, pandas as pd
    >>> pilot = pd.DataFrame({"user": [1, 1, 1, 2, 2, 2], "t": 3 * [0] + 3 * [1], "arm": 3 * ["a", "b"]})
    >>> pilot = pilot.assign(t=[0, 1, 2, 0, 1, 2], reward=[0.3, 1.1, 0.2, 0.5, 0.9, 0.4])
    >>> prior = larl.learn_prior(pilot, orders=(1,))
    >>> prior
    <Prior of 2 units, 6 rewards, continuous, weight by order {1: 1.00}>
    >>> larl.Auto(prior=prior).prior
    <Prior of 2 units, 6 rewards, continuous, weight by order {1: 1.00}>
    """

    arms: tuple[str, ...] = required(lambda *given: names(*given))
    rewards: str = required(one_of("continuous", "binary"))
    units: int = required(integer(1))
    steps: int = required(integer(1))
    components: tuple[PriorComponent, ...] = required(lambda *given: parts(PriorComponent, *given))
    unit_summaries: tuple[UnitSummary, ...] = checked(lambda *given: parts(UnitSummary, *given), ())

    def __post_init__(self) -> None:
        check_fields(self)
        orders = [part.order for part in self.components]
        if not 1 <= len(set(orders)) == len(orders) <= MAX_COMPONENTS:
            accepted = f"from 1 to {MAX_COMPONENTS} components of different orders"
            raise InvalidValue("Prior", "components", f"components of orders {orders}", accepted)
        for i, part in enumerate(self.components):
            if len(part.level) != len(self.arms):
                accepted = f"one level for each of {len(self.arms)} arms"
                raise InvalidValue("Prior", f"components[{i}].level", part.level, accepted)
        total = sum(part.weight for part in self.components)
        if not math.isclose(total, 1.0, abs_tol=1e-3):
            raise InvalidValue("Prior", "components", f"weights that sum to {total:g}", "weights that sum to 1")

    def __repr__(self) -> str:
        orders = ", ".join(f"{part.order}: {part.weight:.2f}" for part in self.components)
        counts = f"{self.units} {'unit' if self.units == 1 else 'units'}, {self.steps} rewards"
        return f"<Prior of {counts}, {self.rewards}, weight by order {{{orders}}}>"

    def __str__(self) -> str:
        head = f"Prior of {self.units:,} units with {self.steps:,} {self.rewards} rewards; arms: {', '.join(self.arms)}"
        return "\n\n".join([head, *(describe(part, self) for part in self.components)])

    def _repr_html_(self) -> str:
        header = ("parameter", *COLUMNS)
        rows = [row for part in self.components for row in describe_rows(part, self)]
        return html_table(repr(self).strip("<>"), rows, header)

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as JSON types."""
        return {"format": FORMAT, "schema": SCHEMA} | to_json_types(asdict(self))

    def save(self, path: str | Path) -> Path:
        """Write the prior to a JSON file and return its path; a file that exists is replaced."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        target = path_like("Prior.save", "path", path)
        return write_atomically(target, lambda draft: draft.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> "Prior":
        """Return the prior of a file that `save` wrote."""
        source = path_like("Prior.load", "path", path)
        try:
            values = json.loads(source.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidValue("Prior.load", "path", str(path), f"a file of Prior.save ({error})") from error
        return prior_from(values, str(path))


def names(owner: str, name: str, value: Any) -> tuple[str, ...]:
    """Two or more different strings."""
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    if not is_list or len(value) < 2 or len(set(value)) < len(value):
        raise InvalidValue(owner, name, value, "two or more different names")
    return tuple(value)


def parts(kind: type[T], owner: str, name: str, value: Any) -> tuple[T, ...]:
    """A sequence of specs of one class, as such or as mappings."""
    if not isinstance(value, list | tuple):
        raise InvalidValue(owner, name, value, f"a sequence of {kind.__name__}")

    def part(i: int, each: Any) -> T:
        if isinstance(each, kind):
            return each
        values = mapping(owner, f"{name}[{i}]", each)
        try:
            return kind(**known_fields(kind, values, owner))
        except InvalidValue as error:
            raise InvalidValue(owner, f"{name}[{i}].{error.name}", error.value, error.accepted) from error

    return tuple(part(i, each) for i, each in enumerate(value))


def prior_from(value: Any, owner: str = "prior") -> Prior:
    """Return the prior that `Prior.to_dict` described; InvalidValue if it is not one."""
    values = dict(mapping(owner, "prior", value))
    for name, accepted in (("format", FORMAT), ("schema", SCHEMA)):
        found = values.pop(name, None)
        if found != accepted:
            raise InvalidValue(owner, name, found, f"{accepted!r}, as Prior.save writes it")
    try:
        return Prior(**known_fields(Prior, values, owner))
    except InvalidValue as error:
        raise InvalidValue(owner, error.name, error.value, error.accepted) from error


def to_prior(owner: str, name: str, value: Any) -> Prior | None:
    """None, a prior, or the mapping of `Prior.to_dict`; no path, because policies are part of requests to a service.

    It leaves out the summaries of units: policies are in files, requests and responses, and units can be people.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = prior_from(value, f"{owner}: {name}")
    if isinstance(value, Prior):
        return replace(value, unit_summaries=())
    raise InvalidValue(owner, name, value, "None, a larl.Prior (larl.Prior.load reads a file) or its mapping")


def to_json_types(value: Any) -> Any:
    """Return nested tuples as lists."""
    if isinstance(value, dict):
        return {key: to_json_types(each) for key, each in value.items()}
    return [to_json_types(each) for each in value] if isinstance(value, tuple | list) else value
