"""Tuning: the settings over which a policy is tuned, and the choice of the best."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

from larl.policies import Policy


class Axis(NamedTuple):
    """One setting of a grid."""

    name: str
    values: tuple[float, ...]
    low: str  # how the policy behaves at the lower end
    high: str  # how the policy behaves at the upper end


class Grid(NamedTuple):
    """The settings over which a policy is tuned."""

    axes: tuple[Axis, ...]
    build: Callable[..., Policy]

    @property
    def points(self) -> list[tuple[float, ...]]:
        """Every combination of values."""
        return list(product(*(axis.values for axis in self.axes)))


def point_name(policy: str, point: Iterable[float]) -> str:
    """Return the name of a grid point."""
    return f"{policy}|" + "|".join(f"{value:g}" for value in point)


class TunedSetting(NamedTuple):
    """The grid point with the smallest mean regret on the tuning seeds."""

    name: str
    policy: Policy
    point: tuple[float, ...]
    regret: float
    description: str
    limits: tuple[str, ...]  # for each axis whose end was chosen: the value, and how the policy behaves there


def choose_setting(name: str, grid: Grid, regret: Callable[[str], float]) -> TunedSetting:
    """Return the best point of a grid, and which of its settings are at an end of their axis.

    Of points with the same regret, the one with the fewest settings at an end wins: a setting without effect should not
    be reported as chosen at a limit.
    """

    def count_ends(point: tuple[float, ...]) -> int:
        return sum(value in (axis.values[0], axis.values[-1]) for axis, value in zip(grid.axes, point, strict=True))

    best = min(grid.points, key=lambda point: (regret(point_name(name, point)), count_ends(point)))
    values, limits = [], []
    for axis, value in zip(grid.axes, best, strict=True):
        values.append(f"{axis.name} {value:g}")
        if value in (axis.values[0], axis.values[-1]):
            limits.append(f"{axis.name} {value:g}: {axis.low if value == axis.values[0] else axis.high}")
    return TunedSetting(
        name=name,
        policy=grid.build(*best),
        point=best,
        regret=regret(point_name(name, best)),
        description=", ".join(values),
        limits=tuple(limits),
    )
