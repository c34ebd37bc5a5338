"""Commands: validated requests that append events to the journal."""

from typing import Any, Generic, NamedTuple, TypeVar

from larl.service.schemas.requests import ExternalDecisionRequest, NewStudy, Request
from larl.service.storage.events import Event, EventKind

Body = TypeVar("Body", bound=Request, covariant=True)
NOT_STORED = ("key", "study")  # fields that are columns of the journal
BODIES = {body.event: body for body in Request.__subclasses__() if body is not ExternalDecisionRequest}


class Command(NamedTuple, Generic[Body]):
    """A request to change something. `key` is its idempotency key."""

    study: str
    key: str
    body: Body
    unit: str = ""
    decision: str = ""
    issue: int = 0

    @property
    def kind(self) -> EventKind:
        """The kind of event that has the response."""
        return self.body.event

    def request(self) -> dict[str, Any]:
        """Return the request as the journal stores it."""
        stored: dict[str, Any] = {"decision": self.decision} if self.decision else {}
        stored.update({name: value for name, value in self.body.stored().items() if name not in NOT_STORED})
        if self.issue:
            stored["issue"] = self.issue
        return stored


def command_of(event: Event) -> Command[Request]:
    """Return the command that appended an event."""
    request, kind = event.request, EventKind(event.kind)
    decision, issue = request.pop("decision", ""), request.pop("issue", 0)
    body = ExternalDecisionRequest if kind == EventKind.DECISION and "made" in request else BODIES[kind]
    named = {"study": event.study} if body is NewStudy else {}
    values = named | {"key": event.key} | request
    known = {name: value for name, value in values.items() if name in body.model_fields}
    unit = request.get("unit") or event.unit or ""
    return Command(event.study, event.key or "", body.from_stored(known), unit, decision, issue)
