"""Studies and units in memory: a cache of the journal."""

from larl.service.core.agent_repository import AgentRepository
from larl.service.core.agents import compile_policy
from larl.service.core.problems import Problem, not_found
from larl.service.core.state import StudyState, UnitState
from larl.service.storage.events import LEARNING_EVENTS, REWARD_EVENTS, STUDY_EVENTS, DamagedRow, Event, EventKind
from larl.service.storage.journal import Journal, Transaction
from larl.service.storage.tables import journal


class StudyRepository:
    """Studies, and the units that were used."""

    def __init__(self, agents: AgentRepository) -> None:
        self.agents = agents
        self._studies: dict[str, StudyState] = {}
        self._units: dict[tuple[str, str], UnitState] = {}
        self._names: dict[str, str] = {}  # name of a unit by the prefix of its decision ids

    def refresh(self, tx: Transaction, names: set[str]) -> None:
        """Read what is new about these studies."""
        for name in names:
            study = self._studies.get(name)
            if study is not None and tx.single_writer:
                continue
            after = study.seq if study else 0
            where = (journal.c.study == name, journal.c.kind.in_(STUDY_EVENTS), journal.c.seq > after)
            try:
                for event in tx.select(*where):
                    study = self.add(event)
            except DamagedRow:  # an earlier policy must not stay in force
                self._studies.pop(name, None)
                raise
            if study is not None and study.config.is_pooled:
                self.agents.catch_up(tx, study.config)

    def save_agents(self) -> None:
        """Save snapshots of all agents that have changed since their last."""
        for name in self._studies:
            self.agents.save_all(name)

    def find(self, name: str) -> StudyState | None:
        """Return a study, None if it is not in memory."""
        return self._studies.get(name)

    def open_study(self, name: str) -> StudyState:
        """Return a study that is not closed; raise 404 or 409."""
        study = self._studies.get(name)
        if study is None:
            raise not_found("study", name)
        if study.closed:
            raise Problem(409, f"the study was closed at {study.closed}", field="study", value=name)
        return study

    def add(self, event: Event) -> StudyState:
        """Apply an event that creates, changes or closes a study."""
        study = self._studies.setdefault(event.study, StudyState())
        study.apply(event)
        compile_policy(study.config)
        if event.kind == EventKind.POLICY:
            self.agents.reset_circuits(event.study)
        return study

    def has_unit(self, study: str, unit: str) -> bool:
        """Return whether a unit is in memory."""
        return (study, unit) in self._units

    def unit(self, tx: Transaction, study: str, unit: str) -> UnitState | None:
        """Return a unit as the journal has it, None if it is not registered."""
        state = self._units.get((study, unit))
        if state is None:
            state = self._read_unit(tx, study, unit)
            if state is not None:
                self.add_unit(study, state)
        elif not tx.single_writer:
            self._catch_up(tx, study, state)
        return state

    def add_unit(self, study: str, unit: UnitState) -> None:
        """Add a unit."""
        self._units[study, unit.unit] = unit
        self._names[f"{study}.{unit.number}"] = unit.unit

    def unit_of(self, reader: Transaction | Journal, decision: str) -> str:
        """Return the unit of a decision, "" if there is none."""
        unit = self._names.get(decision.rsplit("-", 2)[0])
        if unit is None:
            events = reader.select(journal.c.ref == decision, journal.c.kind == EventKind.DECISION)
            unit = events[0].unit if events else None
        return unit or ""

    def _read_unit(self, tx: Transaction, study: str, unit: str) -> UnitState | None:
        here = (journal.c.study == study, journal.c.unit == unit)
        new = [event for event in tx.events if event.study == study and event.unit == unit]
        registered = tx.select(*here, journal.c.kind == EventKind.UNIT) + [e for e in new if e.kind == EventKind.UNIT]
        if not registered:
            return None
        state = UnitState(unit, registered[0].number or 0, seq=registered[0].seq)
        delay = self._studies[study].config.max_delay
        recent = tx.select(*here, journal.c.kind == EventKind.DECISION, limit=delay, newest=True)
        about = (journal.c.ref.in_([event.ref for event in recent]), journal.c.kind.in_(REWARD_EVENTS))
        for event in [*sorted([*recent, *tx.select(*about)]), *new]:
            state.apply(event)
        for event in tx.select(*here, limit=1, newest=True):
            state.seq = event.seq
        return state

    def _catch_up(self, tx: Transaction, study: str, state: UnitState) -> None:
        """Apply events that other processes wrote."""
        here = (journal.c.study == study, journal.c.unit == state.unit, journal.c.seq > state.seq)
        events = tx.select(*here, journal.c.kind.in_(LEARNING_EVENTS))
        for event in events:
            state.apply(event)
        if events:
            self.agents.drop(study, state.unit)

    def committed(self, events: list[Event]) -> None:
        """Note the numbers of stored events."""
        for event in events:
            unit = self._units.get((event.study, event.unit or ""))
            if unit is not None and event.kind in LEARNING_EVENTS:
                unit.seq = event.seq
            if event.kind in STUDY_EVENTS:
                self._studies[event.study].seq = event.seq
        self.agents.committed(events)

    def rollback(self, events: list[Event]) -> None:
        """Forget whatever may know of events that are not stored."""
        for event in events:
            self.forget(event.study, event.unit or "")
            if event.kind in STUDY_EVENTS:
                self._studies.pop(event.study, None)

    def clear(self) -> None:
        """Forget everything: it is read again from the journal."""
        self.agents.clear()
        self._studies.clear()
        self._units.clear()
        self._names.clear()

    def forget(self, study: str, unit: str) -> None:
        """Forget a unit and its agent: they are read again from the journal."""
        self.agents.rollback(study, unit)
        state = self._units.pop((study, unit), None)
        if state is not None:
            self._names.pop(f"{study}.{state.number}", None)
