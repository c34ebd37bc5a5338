"""What every route asks first: who is it, may they, and is the address one of ours."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from larl._core.validation import InvalidValue
from larl.service import asked
from larl.service.access import ANYBODY, ROLES, Access, Holder
from larl.service.clerk import Command
from larl.service.database import StorageError
from larl.service.desk import ROOM, SECONDS
from larl.service.journal import Journal
from larl.service.minds import warm
from larl.service.overview import Overviews
from larl.service.problems import TITLES, Problem, of_value
from larl.service.terms import Terms
from larl.service.views import Views
from larl.service.writer import Writer

LARGEST = 64 * 1024  # bytes of a body
PERMISSIONS = {
    "see": "see",
    "read": "read",
    "write": "write to",
    "resolve": "resolve issues of",
    "manage": "create or change",
}
COOKIE = "larl_session"
LOGINS = 5.0  # a second, from one address
NAMES = 10_000  # whose rate is known; a bucket is full again after two seconds


@dataclass
class Settings:
    """How a service runs."""

    auth: bool = True
    seconds: float = SECONDS  # that a policy may take
    memory: int = ROOM  # bytes for what policies have learnt
    rate: float = 500.0  # requests a second that a token may make
    largest: int = LARGEST
    alert_url: str | None = None
    alert_command: str | None = None
    secure: bool = False  # the page is behind TLS: its cookie goes nowhere else


@dataclass
class Rate:
    """A bucket for each token: it fills at `rate` a second, holds twice that, and each request takes one."""

    rate: float
    left: dict[str, tuple[float, float]] = field(default_factory=dict)
    whose: str = "a token"

    def take(self, name: str) -> None:
        """Let a request pass, or raise Problem."""
        now = time.monotonic()
        before, amount = self.left.get(name, (now, 2.0 * self.rate))
        amount = min(amount + self.rate * (now - before), 2.0 * self.rate)
        if amount < 1.0:
            detail = f"too many requests: {self.whose} may make {self.rate:g} a second; try again in a second"
            raise Problem(429, detail, accepted=f"{self.rate:g} requests a second")
        if len(self.left) > NAMES:
            self.left = {one: (when, some) for one, (when, some) in self.left.items() if now - when < 2.0}
        self.left[name] = now, amount - 1.0


@dataclass
class Service:
    """All that routes need."""

    settings: Settings
    book: Journal
    access: Access
    views: Views
    overviews: Overviews
    rate: Rate
    logins: Rate = field(default_factory=lambda: Rate(LOGINS, whose="an address that logs in"))
    writer: Writer | None = None  # while it runs
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # to be closed at the end, once

    async def prepare(self, terms: Callable[[], Terms]) -> None:
        """Let a policy be compiled while others are served; what is wrong with it is said when its turn comes."""
        with contextlib.suppress(InvalidValue, Problem):
            await run_in_threadpool(lambda: warm(terms()))

    async def do(self, kind: str, study: str, key: str, words: dict[str, Any], unit: str = "") -> Response:
        """Pass a command on, and answer what it is answered."""
        assert self.writer is not None
        answer = await self.writer.do(Command(kind, study, key, words, unit))
        return Response(answer, media_type="application/json")

    async def who(self, request: Request) -> Holder:
        """Who asks: the holder of a token, or somebody at the page."""
        if not self.settings.auth:
            return ANYBODY
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        holder = await self.access.holder(token.strip()) if kind.lower() == "bearer" else None
        if holder is None and not kind and COOKIE in request.cookies:
            if request.method not in ("GET", "HEAD") and "x-larl-page" not in request.headers:
                raise Problem(403, "a request by a session that changes something needs the header X-Larl-Page")
            holder = await self.access.visitor(request.cookies[COOKIE])
        if holder is None:
            said = "this token is unknown or revoked" if kind else "a token is required"
            raise Problem(401, f"{said}; accepted: the header Authorization: Bearer larl_…")
        self.rate.take(holder.id)
        return holder


async def service(request: Request) -> Service:
    """The service that a request came to."""  # a coroutine, or FastAPI would ask a thread
    found: Service = request.app.state.service
    return found


async def who(request: Request) -> Holder:
    """Who asks."""
    return await (await service(request)).who(request)


def need(holder: Holder, what: str, study: str) -> None:
    """Raise 403 unless the token has the permission `what` for the study."""
    if not holder.may(what, study):
        roles = " or ".join(role for role, permitted in ROLES.items() if what in permitted)
        accepted = f"a token with role {roles} for study {study}"
        detail = f"this token cannot {PERMISSIONS[what]} study {study}: it has role {holder.role} for {_scope(holder)}"
        raise Problem(403, f"{detail}; accepted: {accepted}", field="role", value=holder.role, accepted=accepted)


def _scope(holder: Holder) -> str:
    return "all studies" if holder.study == "*" else f"study {holder.study}"


def refusal(error: Problem | InvalidValue | StorageError, headers: Mapping[str, str] | None = None) -> Response:
    """What is answered instead."""
    if isinstance(error, InvalidValue):
        error = of_value(error)
    elif isinstance(error, StorageError):
        error = Problem(503, f"the storage cannot be used: {error.reason}")
    more = {429: {"retry-after": "1"}, 503: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}
    given = dict(headers or {}) | more.get(error.status, {})
    return Response(error.body(), error.status, given, "application/problem+json")


def refusals(*more: int) -> dict[int | str, dict[str, Any]]:
    """How requests are refused, for the description of the interface."""
    schema = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Wrong"}}}
    usual = (400, 401, 403, 413, 415, 422, 429, 500, 503)
    return {code: {"description": TITLES[code], "content": schema} for code in sorted({*usual, *more})}


Here = Annotated[Service, Depends(service)]
Who = Annotated[Holder, Depends(who)]
StudyName = Annotated[asked.Name, Path()]
UnitName = Annotated[asked.Unit, Path()]
DecisionId = Annotated[str, Path(pattern=f"^{asked.DECISION}$")]
IssueNumber = Annotated[int, Path(ge=1, lt=2**62)]
Since = Annotated[asked.Since, Query()]
Part = Annotated[asked.Part, Query()]
PartOfUnit = Annotated[asked.PartOfUnit, Query()]
