"""Warm starts: agents and cohorts that have learnt from a log of decisions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from larl._core.validation import InvalidValue
from larl.live.base import LivePolicy, arm_names
from larl.policies import Policy

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


class WarmStart(LivePolicy):
    """A policy that can start from a log."""

    _has_units: ClassVar[bool] = False  # whether steps belong to named units

    @classmethod
    def from_log(
        cls,
        policy: Policy,
        log: "IntoFrame | str | Path",
        *,
        arms: Sequence[str] | int | None = None,
        time: str | None = None,
        action: str | None = None,
        reward: str | None = None,
        unit: "str | Literal[False] | None" = None,
        context: str | Sequence[str] | None = None,
        day_first: bool | None = None,
        **settings: Any,
    ) -> Self:
        """Create an agent or a cohort that has learnt from a log, such as that of a pilot.

        Every row is a step that was decided outside larl: the result equals, bit for bit, a new one to which the rows
        were reported by ``record`` and ``observe`` in order of time. The next ``decide`` continues from there.

        Parameters
        ----------
        policy : Policy
            For example ``larl.LARL(s=5)``. It may be another one than that which decided in the log.
        log : table, str or Path
            The log with one row per decision, as for ``larl.diagnose``: a table of pandas, polars, pyarrow or another
            library that narwhals supports, or the path of a CSV (also gzipped) or Parquet file. A row without a reward
            is a step whose reward is missing; a row without an action is a step without an arm.
        arms : sequence of str, or int, optional
            Names of all arms, in the order of the policy, or their number. By default those of the log, in numerical or
            alphabetical order. Name them if an arm does not occur in the log.
        time, action, reward : str, optional
            Names of the columns. By default columns with common names are used: `t`, `time`, `step`, `timestamp`; `a`,
            `action`, `arm` (or `played`); `r`, `reward`.
        unit : str or False, optional
            Name of the unit's column. By default `u`, `unit`, `user`, or an `id` that repeats. False: the log has one
            unit. An ``Agent`` learns from one unit, a ``Cohort`` from all.
        context : str or sequence of str, optional
            Columns of the context, numbers, in the order of ``decide``. By default `context_0`, `context_1`, …
        day_first : bool, optional
            Whether dates such as 03/04/2026 have the day first. Needed only if the column is ambiguous.
        **settings
            Further arguments of the class, such as ``seed``, ``min_probability`` and, of a cohort, ``pooling``.

        Returns
        -------
        Agent or Cohort
            Its ``t`` is the number of rows.

        Raises
        ------
        InvalidValue
            If an argument is not usable, a column is missing, or a cell cannot be read; the message names row and
            column. An agent refuses a log of several units.

        Examples
        --------
        >>> import larl, pandas as pd
        >>> pilot = pd.DataFrame({"t": range(4), "arm": ["off", "on", "off", "on"], "reward": [0.1, 0.9, 0.3, None]})
        >>> agent = larl.Agent.from_log(larl.UCB(), pilot, seed=7, min_probability=0.1)
        >>> agent.t, agent.counts["learnt"], agent.counts["missing"]
        (4, 3, 1)
        >>> agent.decide().probabilities
        {'off': 0.1, 'on': 0.9}
        >>> users = pilot.assign(user=["anna", "anna", "ben", "ben"])
        >>> larl.Cohort.from_log(larl.UCB(), users, pooling="full").units
        ('anna', 'ben')
        """
        from larl.logs.steps import load_steps

        owner = f"{cls.__name__}.from_log"
        found = load_steps(
            log,
            {"time": time, "action": action, "reward": reward, "unit": unit},
            arms=None if arms is None else arm_names(owner, arms),
            context=_context_columns(owner, policy, context),
            day_first=day_first,
            owner=owner,
        )
        cls._check_units(owner, found.units, unit)
        if len(found.arms) < 2:
            accepted = "two or more different names, arms=[…]: all actions of the log are the same"
            raise InvalidValue(owner, "arms", list(found.arms), accepted)
        learner: Any = cls(policy, found.arms, **settings)
        for step in found.steps:
            place = (step.unit,) if cls._has_units else ()
            decision = learner.record(*place, step.arm, step.context or None)
            if step.arm is not None:
                learner.observe(decision, step.reward)
        result: Self = learner
        return result

    @classmethod
    def _check_units(cls, owner: str, units: Sequence[str], given: object) -> None:
        """Raise InvalidValue for a log of several units without a cohort, or of no named unit with one."""
        if cls._has_units and not units:
            accepted = "the name of the column of the unit; Agent.from_log learns from a log of one unit"
            raise InvalidValue(owner, "unit", given, accepted)
        if not cls._has_units and len(units) > 1:
            accepted = "a log of one unit, or unit=False if it is one; Cohort.from_log learns from several units"
            raise InvalidValue(owner, "log", f"{len(units):,} units", accepted)


def _context_columns(owner: str, policy: Policy, context: str | Sequence[str] | None) -> list[str]:
    """Return the columns of the context, as many as the policy uses."""
    size = int(getattr(policy, "context", 0))
    if context is None:
        return [f"context_{i}" for i in range(size)]
    names = [context] if isinstance(context, str) else list(context)
    if len(names) != size:
        accepted = f"names of {size} columns, for {policy}" if size else f"none: {policy} uses no context"
        raise InvalidValue(owner, "context", context, accepted)
    return names
