"""A policy live for many units that learn from each other.

    cohort = larl.Cohort(larl.LARL(s=1), arms=["nothing", "prompt"], seed=7, pooling="partial")
    decision = cohort.decide("unit-17")
    cohort.observe(decision, reward=0.4)

The same compiled functions as in the lab: a cohort stepped by hand is the engine's (`compare(units=…)`), bit for bit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from larl import __version__
from larl._core.compile import copy_fields
from larl._core.validation import InvalidValue, one_of
from larl.live import files as _file
from larl.live.base import COUNTS, Decision, Live, Streams, terms_of
from larl.live.independent_history import Apart
from larl.live.renamed import upgraded
from larl.live.shared_history import Together
from larl.policies import Policy
from larl.policies._pooling import POOLINGS, pooled
from larl.worlds.base import World


class Cohort(Live):
    """A policy that decides for many units; each has its own history, and what is learnt is shared as `pooling` says.

    `"none"`: nothing is; every unit is an agent of its own. `"full"`: one regression for all. `"partial"`: every unit
    has its own, which lies around the one of all, the nearer the less its own rewards tell and the more alike units are
    (docs/cohort.md). Units appear with their first decision, or when they `enter`;
    unit u, counted from 0 in that order, has the words of the engine's trial u.

    A reward may come until its unit has made `max_delay` decisions, its own included; in a cohort that pools, also only
    until all units together have made `max_delay` × units decisions, so that a unit that left does not keep the
    history of all units open. Later it is counted as late and not learnt from. The State is always that of a cohort
    that was told everything in time, in the order of decisions. The other arguments are those of `Agent`.
    """

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int = 0,
        *,
        pooling: str = "none",
        min_probability: float = 0.0,
        max_delay: int = 50,
        horizon: int | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__(policy, arms, seed, min_probability, max_delay, horizon, world)
        self.pooling = one_of(*POOLINGS)("Cohort", "pooling", pooling)
        self._first = pooled(policy, self._fresh(), self.pooling)
        self._numbers: dict[str, int] = {}
        self._streams: list[Streams] = []
        kind = Apart if self.pooling == "none" else Together
        self._past: Apart | Together = kind(self._first, self.max_delay, self._width)
        self._bind(copy_fields(self._first))
        self._saved: Path | None = None

    @property
    def units(self) -> tuple[str, ...]:
        """The units that there are, in order of their first decisions."""
        return tuple(self._numbers)

    @property
    def t(self) -> int:
        """How many decisions were made, of all units."""
        return sum(map(self._past.count, range(len(self._numbers))))

    def state(self, unit: str) -> Any:
        """The State of a unit before its coming step (a reward that may still come counts as missing so far)."""
        if unit not in self._numbers:
            raise InvalidValue("state", "unit", unit, "a unit that has made a decision")
        return self._past.state(self._numbers[unit])

    def decide(
        self, unit: str, available: Sequence[str] | None = None, context: Sequence[float] | None = None
    ) -> Decision:
        """Decide for the coming step of a unit; its time moves on by one.

        `available`: the arms that can be chosen, all unless given; with none, the step passes without an arm.
        """
        can, shown = self._mask(available), self._context(context)
        number, past = self.enter(unit), self._past
        state, t = past.state(number), past.count(number)
        if available is not None and not can.any():
            past.add(number, -1, shown, pending=False)
            return Decision(self._id(number, t), t, **self._nothing(), unit=unit)
        arm, words = self._chosen(state, self._streams[number], t, shown, can)
        past.add(number, arm, shown, pending=True)
        return Decision(self._id(number, t), t, **words, unit=unit)

    def record(self, unit: str, arm: str | None, context: Sequence[float] | None = None) -> str:
        """A step of a unit for which somebody else has chosen the arm (None: there was none); its decision's id.

        It counts as a decision, whose reward may come.
        """
        played, shown = -1 if arm is None else self._arm("record", arm), self._context(context)
        number, past = self.enter(unit), self._past
        past.state(number)  # all before it is learnt
        past.add(number, played, shown, pending=arm is not None)
        return self._id(number, past.count(number) - 1)

    def observe(self, decision: Decision | str, reward: float | None, *, arm: str | None = None) -> str:
        """Learn what came of a decision (or of its id): a reward, or None if this moment passed without one.

        `arm` is what was done in fact, if not what was decided. Returns how it was taken, in the words of
        `Agent.observe`; "repaired" where further decisions were made in between by whoever learns from this one.
        """
        number, t = self._step(decision)
        value, told = self._told(reward, arm)
        place = self._past.place(number, t)
        return self._count("late") if place is None else self._take(*place, value, told, t)

    def save(self, path: str | Path) -> Path:
        """Write the cohort to a JSON file, whole or not at all. A file that is not this cohort's is not overwritten."""
        path = Path(path)
        self._refuse_nan(*self._past.states())
        if self._saved != path.resolve():
            _file.refuse_foreign(path, self._terms(), "cohort")
        _file.write(path, self.pack(), "cohort")
        self._saved = path.resolve()
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Cohort":
        """The cohort that `save` wrote; a file that was cut short, edited or is another's is refused."""
        values = _file.read(path, "cohort")
        with _file.fitting(path, values):
            cohort = cls.unpack(values)
        cohort._saved = Path(path).resolve()
        return cohort

    def __repr__(self) -> str:
        units = f"{len(self._numbers)} unit{'s' * (len(self._numbers) != 1)}"
        return f"<Cohort of {units}: {self.policy}, arms={list(self.arms)}, pooling={self.pooling!r}, t={self.t}>"

    def pack(self) -> dict[str, Any]:
        """The cohort as JSON types."""
        own = {"counts": self.counts, "units": list(self.units)}
        return {"larl": __version__, **self._terms(), **own, **self._past.pack()}

    @classmethod
    def unpack(cls, values: Mapping[str, Any]) -> "Cohort":
        """The cohort that `pack` made."""
        values = upgraded(values)
        cohort = cls(**terms_of(values), pooling=values["pooling"])
        for unit in values["units"]:
            cohort._name(unit)
        kind, count = type(cohort._past), len(cohort._numbers)
        cohort._past = kind.unpack(values, cohort._first, cohort.max_delay, cohort._width, count)
        cohort.counts = {name: int(values["counts"][name]) for name in COUNTS}
        return cohort

    def enter(self, unit: str) -> int:
        """The number of a unit, counted from 0; of a new one, the next."""
        if not isinstance(unit, str) or not unit:
            raise InvalidValue("enter", "unit", unit, "a name")
        if unit not in self._numbers:
            self._past.enter()
            self._name(unit)
        return self._numbers[unit]

    def _terms(self) -> dict[str, Any]:
        return super()._terms() | {"pooling": self.pooling}

    def _name(self, unit: str) -> None:
        self._numbers[unit] = len(self._streams)
        self._streams.append(Streams.of(self.seed, len(self._streams)))

    def _id(self, number: int, t: int) -> str:
        return f"{number}-{t}-{self._streams[number].name(t)}"

    def _step(self, decision: Decision | str) -> tuple[int, int]:
        """Unit and step of a decision of this cohort."""
        name = decision.id if isinstance(decision, Decision) else decision
        parts = name.split("-")[:2] if isinstance(name, str) else []
        if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
            number, t = int(parts[0]), int(parts[1])
            if number < len(self._streams) and t < self._past.count(number) and self._id(number, t) == name:
                return number, t
        raise InvalidValue("observe", "decision", name, "a Decision of this cohort, or its id")
