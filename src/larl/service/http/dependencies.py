"""What routes depend on: the running service, the authenticated principal, and parameters of paths and queries."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import anyio
from anyio import to_thread
from fastapi import Depends, Path, Query, Request, Response

from larl._core.validation import InvalidValue
from larl.service.core.agents import compile_policy
from larl.service.core.command_queue import CommandQueue
from larl.service.core.commands import Command
from larl.service.core.problems import Problem
from larl.service.core.study_config import StudyConfig
from larl.service.http.auth import ANONYMOUS_ADMIN, Auth, Principal, require
from larl.service.http.rate_limit import TokenBucket
from larl.service.http.readers import Readers
from larl.service.schemas import requests
from larl.service.settings import Settings
from larl.service.storage.journal import Journal

COOKIE = "larl_session"
COMPILERS = 2  # policies that are compiled at the same time: other requests need threads too
LOGINS = 5.0  # per second, from one address


class StoredResponse(Response):
    """A response from the journal; it is faster to build than a general one."""

    def __init__(self, body: bytes) -> None:
        self.status_code, self.background, self.body = 200, None, body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]


@dataclass
class Service:
    """A running service."""

    settings: Settings
    auth: Auth
    journal: Journal
    rate: TokenBucket
    logins: TokenBucket = field(default_factory=lambda: TokenBucket(LOGINS, "an address may make", "log-ins"))
    compilers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(COMPILERS))
    readers: Readers = field(init=False)  # while the service runs
    commands: CommandQueue = field(init=False)
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # closed at the end, once

    async def compile(self, config: Callable[[], StudyConfig]) -> None:
        """Compile a policy while other requests are served; the command itself reports what is wrong with it."""
        with contextlib.suppress(InvalidValue, Problem):
            await to_thread.run_sync(lambda: compile_policy(config()), limiter=self.compilers)

    async def execute(self, study: str, key: str, body: requests.Request, **more: Any) -> Response:
        """Execute a command; return its response."""
        self.readers.journal.begin_command()
        try:
            return StoredResponse(await self.commands.execute(Command(study, key, body, **more)))
        finally:
            self.readers.journal.end_command()

    def check_storage(self) -> None:
        """Raise StorageError if the storage cannot be read or written. It is written only if the last batch failed."""
        database = self.journal.database
        self.journal.select(limit=1)
        database.check_space()
        if self.commands.failure is not None:
            database.check_writable()

    async def authenticate(self, request: Request) -> Principal:
        """Return the principal of a request, from its token or the page's session; raise 401, 403 or 429."""
        if not self.settings.auth:
            return ANONYMOUS_ADMIN
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        principal = await self.auth.token_principal(token.strip()) if scheme.lower() == "bearer" else None
        if principal is None and not scheme and COOKIE in request.cookies:
            if request.method not in ("GET", "HEAD") and "x-larl-page" not in request.headers:
                raise Problem(403, "a request of the page that changes something needs the header X-Larl-Page")
            principal = await self.auth.session_principal(request.cookies[COOKIE])
        if principal is None:
            reason = "this token is unknown or revoked" if scheme else "a token is required"
            raise Problem(401, f"{reason}; accepted: the header Authorization: Bearer larl_…")
        await self.rate.take(principal.id)
        return principal


async def current_service(request: Request) -> Service:
    """Return the running service; note the route for the log."""  # a coroutine: FastAPI runs functions on a thread
    request.scope["larl.log"]["route"] = request.scope["route"].path
    service: Service = request.app.state.service
    return service


class Call(NamedTuple):
    """An authenticated request: the running service, and the principal that calls it."""

    service: Service
    principal: Principal

    def require(self, permission: str, study: str) -> Service:
        """Return the service; raise 403 unless the principal has the permission for the study."""
        require(self.principal, permission, study)
        return self.service

    async def read(self, rows: int, query: Callable[[], Any]) -> Response:
        """Return what a query returns, which has at most so many rows, as a response."""
        return await self.service.readers.json(self.principal.id, rows, query)

    async def read_page(self, page: requests.Page, query: Callable[[int, int], Any]) -> Response:
        """Return a page of a list; the query gets a cursor and a limit."""
        return await self.service.readers.page(self.principal.id, page.after, page.limit, query)


async def current_call(request: Request) -> Call:
    """Return the service and the principal of a request."""
    service = await current_service(request)
    return Call(service, await service.authenticate(request))


CurrentService = Annotated[Service, Depends(current_service)]
Caller = Annotated[Call, Depends(current_call)]
StudyName = Annotated[requests.Name, Path()]
UnitName = Annotated[requests.Unit, Path()]
DecisionId = Annotated[str, Path(pattern=f"^{requests.DECISION}$")]
IssueNumber = Annotated[int, Path(ge=1, lt=2**62)]
AfterQuery = Annotated[requests.After, Query()]
UnitAfterQuery = Annotated[requests.UnitAfter, Query()]
PageQuery = Annotated[requests.Page, Query()]
UnitPageQuery = Annotated[requests.UnitPage, Query()]
