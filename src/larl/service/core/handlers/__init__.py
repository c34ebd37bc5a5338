"""Handlers of commands: each appends events, one of which has the response."""

from collections.abc import Callable
from typing import Any

from larl.service.core.commands import Command
from larl.service.core.handlers.base import PolicyCalls
from larl.service.core.handlers.decisions import DecisionHandlers
from larl.service.core.handlers.history import HistoryHandlers
from larl.service.core.handlers.issues import resolve
from larl.service.core.handlers.rewards import RewardHandlers
from larl.service.core.handlers.studies import StudyHandlers
from larl.service.core.handlers.units import UnitHandlers
from larl.service.core.issues import IssueLog
from larl.service.core.streams import new_secret
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas import requests
from larl.service.storage.events import Event
from larl.service.storage.journal import Transaction

Handler = Callable[[Transaction, Any, str], Event]


class CommandHandlers:
    """All handlers of commands, by the type of the body."""

    def __init__(
        self,
        studies: StudyRepository,
        issues: IssueLog,
        draw_secret: Callable[[], bytes | None] = new_secret,
        *,
        limit_state: bool = True,
    ) -> None:
        policies, units = PolicyCalls(studies.agents, issues), UnitHandlers(studies)
        about_studies = StudyHandlers(studies, draw_secret, limit_state=limit_state)
        self.rewards = RewardHandlers(studies, policies)
        decisions = DecisionHandlers(studies, policies, units, self.rewards)
        self.history = HistoryHandlers(studies, policies, units, self.rewards)
        self._handlers: dict[type[requests.Request], Handler] = {
            requests.NewStudy: about_studies.create,
            requests.NewPolicy: about_studies.change_policy,
            requests.CloseStudyRequest: about_studies.close,
            requests.NewUnit: units.register,
            requests.DecisionRequest: decisions.decide,
            requests.ExternalDecisionRequest: decisions.ingest,
            requests.HistoryRequest: self.history.import_steps,
            requests.RewardRequest: self.rewards.reward,
            requests.DeliveryRequest: self.rewards.deliver,
            requests.Resolution: resolve,
        }

    def execute(self, tx: Transaction, command: Command[requests.Request], at: str) -> Event:
        """Append the events of a command; return the one with its response. Raise Problem or InvalidValue."""
        return self._handlers[type(command.body)](tx, command, at)
