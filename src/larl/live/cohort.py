"""`Cohort`: a policy that decides for many units, which can share what they learn."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Self

from numba import types

from larl import __version__
from larl._core.states import Memory
from larl._core.validation import InvalidValue, Vector, one_of
from larl.live import files, kernels
from larl.live.base import Minimum, Reward, read_settings
from larl.live.decision import Decision, RewardStatus
from larl.live.history import History, IndependentHistory
from larl.live.log_checks import check_counts, check_names
from larl.live.saved import SavedPolicy
from larl.live.shared_history import SharedHistory
from larl.policies import Allocation, Policy
from larl.policies._pooling import POOLINGS, pooled_state
from larl.worlds.base import World

_decide = kernels.direct(kernels.decide, types.int64, types.int64)


class Cohort(SavedPolicy):
    """A policy that decides for many units, which can share what they learn.

    Units are added by their first decision, or by ``enter``. Unit u, counted from 0 in that order, has the random
    numbers of trial u: a cohort stepped by hand equals ``larl.compare(units=…)`` bit for bit. The State is
    always as if every reward had come in time, in the order of decisions.

    Parameters
    ----------
    policy : Policy
        For example ``larl.LARL(s=1)``. ``"full"`` and ``"partial"`` pooling need a policy that supports them.
    arms : sequence of str, or int
        Names of two or more arms, or their number, 2 to 10⁴ (names ``"0"``, ``"1"``, …).
    seed : int, >= 0, default 0
        Seed of all random choices.
    pooling : {"none", "full", "partial"}, default "none"
        ``"none"``: every unit learns alone, as an ``Agent``. ``"full"``: one regression for all units. ``"partial"``:
        each unit has its own regression, which shrinks towards the population estimate (docs/cohort.md).
    min_probability, allocation, warm_up, warm_up_probabilities : optional
        As for ``Agent``, for every unit.
    update_every : int, >= 1, or "night", optional
        As for ``Agent``, counted in decisions of each unit. With pooling, the State of a unit's update has what all
        units have learnt until then.
    max_delay : int, 1 to 10⁶, default 50
        Maximum delay of a reward, in decisions of its unit, its own included. With pooling, a reward is also late once
        all units together have made ``max_delay`` × units further decisions, so that a unit that left the study does
        not keep the log growing.
    horizon : int, optional
        Number of steps of a unit, for policies that need it.
    world : World, optional
        The true world, for oracles such as ``larl.KalmanOracle``.

    Attributes
    ----------
    counts : dict of str to int
        Number of reports to ``observe`` by ``RewardStatus``.

    Raises
    ------
    InvalidValue
        If an argument is not usable, or the policy does not support the pooling.

    Examples
    --------
    >>> import larl
    >>> cohort = larl.Cohort(larl.LARL(s=1), arms=["nothing", "prompt"], seed=7, pooling="full")
    >>> decision = cohort.decide("unit-17")
    >>> decision.unit, decision.arm
    ('unit-17', 'prompt')
    >>> cohort.observe(decision, reward=0.4)
    <RewardStatus.LEARNT: 'learnt'>
    >>> cohort.units, cohort.t
    (('unit-17',), 1)
    """

    _has_units = True
    _kind = "cohort"

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int = 0,
        *,
        pooling: str = "none",
        min_probability: Minimum = 0.0,
        allocation: str | Mapping[str, Any] | Allocation = "ucb",
        update_every: int | str | None = None,
        warm_up: int = 0,
        warm_up_probabilities: Mapping[str, float] | None = None,
        max_delay: int = 50,
        horizon: int | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__(
            policy,
            arms,
            seed,
            min_probability=min_probability,
            allocation=allocation,
            update_every=update_every,
            warm_up=warm_up,
            warm_up_probabilities=warm_up_probabilities,
            max_delay=max_delay,
            horizon=horizon,
            world=world,
        )
        self.pooling = one_of(*POOLINGS)("Cohort", "pooling", pooling)
        memory = self._initial_memory()
        if self.pooling != "none":
            memory = Memory(pooled_state(policy, memory.state(), self.pooling))
        self._new_unit = memory.state()
        self._numbers: dict[str, int] = {}
        record, sizes = self._new_record(memory), self._log_sizes()
        self._history: IndependentHistory | SharedHistory
        if self.pooling == "none":
            self._history = IndependentHistory(lambda _: History(memory, record.copy(), sizes.max_delay, sizes.context))
        else:
            self._history = SharedHistory(self._new_unit, record, sizes.max_delay, sizes.context)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units, in the order in which they were added."""
        return tuple(self._numbers)

    @property
    def t(self) -> int:
        """Number of decisions of all units so far."""
        return sum(map(self._history.count, range(len(self._numbers))))

    def state(self, unit: str) -> Any:
        """The State of a unit before its next step; a reward that has not come yet counts as missing."""
        if unit not in self._numbers:
            raise InvalidValue("state", "unit", unit, "a unit of this cohort")
        return self._history.state(self._numbers[unit])

    def decide(
        self,
        unit: str,
        available: Sequence[str] | None = None,
        context: Vector | None = None,
        day: date | None = None,
    ) -> Decision:
        """Choose the arm of the next step of a unit.

        Parameters
        ----------
        unit : str
            Name of the unit; a new name adds a unit.
        available, context, day
            As for ``Agent.decide``.

        Returns
        -------
        Decision
            The arm, its probabilities and the policy's prediction.

        Raises
        ------
        InvalidValue
            If the unit is not a name, or for the reasons of ``Agent.decide``.
        PolicyError
            If the policy's numbers are invalid.
        """
        mask, checked_context = self._available_mask(available), self._check_context(context)
        day_number = self._schedule.check_day(day)
        number, history = self.enter(unit), self._history
        history.catch_up(number)
        t, record = history.count(number), history.record(number)
        if not mask.any():
            history.add(number, -1, checked_context, pending=False)
            return Decision(self._id(number, t), t, **self._unavailable_fields(), unit=unit)
        update = self._schedule.update(number, t, day_number, lambda: history.copy_state(number))
        self._set_choice(record, mask, checked_context, update)
        self._set_streams(record, number, t)
        try:
            arm = _decide(int(record.ctypes.data), t)
        except ArithmeticError as error:
            raise self._refusal(error) from None
        self._schedule.keep(number, update)
        history.add(number, arm, checked_context, pending=True)
        return self._decision(record, arm, self._id(number, t), unit)

    def update_if_due(self, unit: str, day: date | None = None) -> None:
        """Learn as ``decide`` would, if an update of the unit is due: for a decision that is recorded again."""
        number, history, day_number = self.enter(unit), self._history, self._schedule.check_day(day)
        history.catch_up(number)
        update = self._schedule.update(number, history.count(number), day_number, lambda: history.copy_state(number))
        self._schedule.keep(number, update)

    def record(self, unit: str, arm: str | None, context: Vector | None = None) -> str:
        """Record a step of a unit whose arm was chosen outside larl.

        Parameters
        ----------
        unit : str
            Name of the unit; a new name adds a unit.
        arm, context
            As for ``Agent.record``.

        Returns
        -------
        str
            Id of the decision, for ``observe``.
        """
        played, checked_context = -1 if arm is None else self._arm_number("record", arm), self._check_context(context)
        number, history = self.enter(unit), self._history
        history.catch_up(number)
        history.add(number, played, checked_context, pending=arm is not None)
        return self._id(number, history.count(number) - 1)

    def observe(self, decision: Decision | str, reward: Reward | None, *, arm: str | None = None) -> RewardStatus:
        """Report the reward of a decision of any unit, as ``Agent.observe`` does.

        Parameters
        ----------
        decision : Decision or str
            A decision of this cohort, or its id.
        reward, arm
            As for ``Agent.observe``.

        Returns
        -------
        RewardStatus
            How the reward was used; ``"repaired"`` if a unit that learns from it has decided in between.

        Raises
        ------
        InvalidValue
            For the reasons of ``Agent.observe``.

        Examples
        --------
        >>> import larl
        >>> cohort = larl.Cohort(larl.UCB(), arms=["off", "on"], pooling="full")
        >>> first, second = cohort.decide("anna"), cohort.decide("ben")
        >>> [str(cohort.observe(each, 1.0)) for each in (first, second)]
        ['repaired', 'learnt']
        """
        number, t = self._step_of(decision)
        value, played = self._check_reward(reward, arm)
        located = self._history.locate(number, t)
        return self._count(RewardStatus.LATE) if located is None else self._set_reward(*located, value, played, t)

    def __repr__(self) -> str:
        units = f"{len(self._numbers)} unit{'s' * (len(self._numbers) != 1)}"
        return f"<Cohort of {units}: {self.policy}, arms={list(self.arms)}, pooling={self.pooling!r}, t={self.t}>"

    def pack(self) -> dict[str, Any]:
        """The cohort as JSON types."""
        own = {"counts": self.counts, "units": list(self.units)} | files.pack_updates(self._schedule)
        return {"larl": __version__, **self._settings(), **own, **self._pack_history()}

    def _pack_history(self) -> dict[str, Any]:
        if isinstance(self._history, SharedHistory):
            return self._history.pack()
        return {"each": [files.pack_history(history) for history in self._history.histories]}

    @classmethod
    def unpack(cls, values: Mapping[str, Any]) -> Self:
        """The cohort that `pack` returned as JSON types."""
        cohort = cls(**read_settings(values), pooling=values["pooling"])
        for unit in check_names("units", values["units"]):
            cohort._numbers[unit] = len(cohort._numbers)
            cohort._history.add_unit()
        files.unpack_updates(values, cohort._schedule, Memory(cohort._new_unit), len(cohort._numbers))
        if isinstance(cohort._history, SharedHistory):
            cohort._history.unpack(values, cohort._log_sizes())
        else:
            for history, each in zip(cohort._history.histories, values["each"], strict=True):
                files.unpack_history(each, history, cohort._log_sizes())
        cohort.counts = check_counts(values["counts"], list(RewardStatus))
        return cohort

    def enter(self, unit: str) -> int:
        """Add a unit unless it exists; return its number, from 0 in the order in which units were added."""
        if not isinstance(unit, str) or not unit:
            raise InvalidValue("enter", "unit", unit, "a name")
        if unit not in self._numbers:
            self._history.add_unit()
            self._numbers[unit] = len(self._numbers)
        return self._numbers[unit]

    def _states(self) -> list[Any]:
        return self._history.states()

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"pooling": self.pooling}

    def _id(self, number: int, t: int) -> str:
        return f"{number}-{t}-{self._streams(number).id_suffix(t)}"

    def _step_of(self, decision: Decision | str) -> tuple[int, int]:
        """Unit and step of a decision of this cohort."""
        name = decision.id if isinstance(decision, Decision) else decision
        parts = name.split("-")[:2] if isinstance(name, str) else []
        if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
            number, t = int(parts[0]), int(parts[1])
            if number < len(self._numbers) and t < self._history.count(number) and self._id(number, t) == name:
                return number, t
        raise InvalidValue("observe", "decision", name, "a Decision of this cohort, or its id")
