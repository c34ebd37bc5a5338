"""Commands about studies."""

from collections.abc import Callable

from larl._core.validation import InvalidValue
from larl.client.models import ClosedStudy
from larl.service.core.commands import Command
from larl.service.core.handlers.base import append
from larl.service.core.payloads import PolicyChanged, study_created
from larl.service.core.state import StudyState
from larl.service.core.streams import secret_to_ref
from larl.service.core.study_config import StudyConfig
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import CloseStudyRequest, NewPolicy, NewStudy
from larl.service.storage.events import Event
from larl.service.storage.journal import Transaction


class StudyHandlers:
    """Creates, changes and closes studies."""

    def __init__(self, studies: StudyRepository, draw_secret: Callable[[], bytes | None], *, limit_state: bool) -> None:
        self._studies, self._draw_secret, self._limit_state = studies, draw_secret, limit_state

    def create(self, tx: Transaction, command: Command[NewStudy], at: str) -> Event:
        """Create a study."""
        config = StudyConfig.create(vars(command.body), limit_state=self._limit_state)
        ref = secret_to_ref(self._draw_secret())
        event = append(tx, command, study_created(StudyState([config]), at), at, ref=ref, number=1)
        self._studies.add(event)
        return event

    def change_policy(self, tx: Transaction, command: Command[NewPolicy], at: str) -> Event:
        """Put another policy in force."""
        config, body = self._studies.open_study(command.study).config, command.body
        if body.replaces != config.version:
            raise InvalidValue("policy", "replaces", body.replaces, f"{config.version}, the version in force")
        new = config.with_policy(body.policy, body.min_probability, body.allocation, limit_state=self._limit_state)
        payload = PolicyChanged(study=new.study, policy_version=new.version, at=at, config=new.to_dict())
        event = append(tx, command, payload, at, number=new.version)
        self._studies.add(event)
        return event

    def close(self, tx: Transaction, command: Command[CloseStudyRequest], at: str) -> Event:
        """Close a study."""
        self._studies.open_study(command.study)
        event = append(tx, command, ClosedStudy(study=command.study, closed=at), at)
        self._studies.add(event)
        return event
