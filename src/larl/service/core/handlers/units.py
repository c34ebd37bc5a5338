"""Commands about units."""

from larl.client.models import UnitInfo
from larl.service.core.commands import Command
from larl.service.core.handlers.base import append
from larl.service.core.problems import not_found
from larl.service.core.state import StudyState, UnitState
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import NewUnit
from larl.service.storage.events import Event, EventKind
from larl.service.storage.journal import Transaction
from larl.service.storage.tables import journal


class UnitHandlers:
    """Registers units."""

    def __init__(self, studies: StudyRepository) -> None:
        self._studies = studies

    def register(self, tx: Transaction, command: Command[NewUnit], at: str) -> Event:
        """Register a unit; its number is the next one of the study."""
        config = self._studies.open_study(command.study).config
        last = tx.select(journal.c.study == command.study, journal.c.kind == EventKind.UNIT, limit=1, newest=True)
        new = [event for event in tx.events if event.kind == EventKind.UNIT and event.study == command.study]
        number = 1 + max((event.number or 0 for event in [*last, *new]), default=-1)
        payload = UnitInfo(study=command.study, unit=command.unit, number=number, at=at)
        event = append(tx, command, payload, at, unit=command.unit, number=number)
        self._studies.add_unit(command.study, UnitState(command.unit, number))
        if config.is_pooled:
            self._studies.agents.learn(config, command.unit, [event])
        return event

    def find_or_register(self, tx: Transaction, study: StudyState, unit: str, at: str) -> UnitState:
        """Return a unit; a new one is registered, or 404 if the study wants units to be registered explicitly."""
        name = study.config.study
        state = self._studies.unit(tx, name, unit)
        if state is None:
            if study.config.registration == "explicit":
                raise not_found("unit", unit)
            self.register(tx, Command(name, unit, NewUnit(unit=unit), unit), at)
            state = self._studies.unit(tx, name, unit)
        assert state is not None
        return state
