"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from larl import __version__
from larl._core.validation import InvalidValue
from larl.service import looking, pages, reading, said, session, writing
from larl.service.access import Access
from larl.service.alerts import Alerts
from larl.service.database import Database, StorageError
from larl.service.desk import Desk
from larl.service.direct import Direct
from larl.service.door import Rate, Service, Settings, refusal
from larl.service.gate import Gate, failure
from larl.service.journal import Journal
from larl.service.messages import of_validation
from larl.service.overview import Overviews
from larl.service.problems import TITLES, Problem
from larl.service.views import Views
from larl.service.writer import Writer


class _App(FastAPI):
    """What the framework answers; what comes passes the gate, and the direct routes, first."""

    def __init__(self, here: Service, **more: Any) -> None:
        super().__init__(**more)
        self._first = Gate(Direct(super().__call__, here), here.settings.largest)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._first(scope, receive, send)


def make_app(database: Database, settings: Settings | None = None) -> FastAPI:
    """The service of a storage that this process may write."""
    settings = settings or Settings()
    book = Journal(database)
    views = Views(book)
    here = Service(settings, book, Access(database), views, Overviews(book, views), Rate(settings.rate))

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        alerts = Alerts(settings.alert_url, settings.alert_command)
        here.writer = Writer(Desk(book, seconds=settings.seconds, room=settings.memory, alert=alerts.send))
        for close in (alerts.close, here.overviews.close, database.checkpoint, here.writer.close):
            here.resources.callback(close)  # the last is closed first
        yield
        here.resources.close()

    app = _App(here, title="larl", version=__version__, lifespan=life, docs_url=None, redoc_url=None)
    app.state.service = here
    for part in (writing, reading, looking, session, pages):
        app.include_router(part.router)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


async def _refused(_: Request, error: Any) -> Response:
    return refusal(error)


async def _failed(request: Request, _: Any) -> Response:
    return refusal(failure(request.scope))


async def _not_valid(request: Request, error: Any) -> Response:
    """The first thing that is wrong with a request."""
    endpoint = request.scope["endpoint"]
    return refusal(of_validation(error.errors()[0], request.headers.get("content-type"), endpoint))


async def _not_found(request: Request, error: Any) -> Response:
    """An address that there is not, or a method that it does not have."""
    status = error.status_code if error.status_code in TITLES else 400
    known = "; /openapi.json describes the interface"
    details = {
        404: f"there is no such address: {request.url.path}{known}",
        405: f"method {request.method} is not accepted at {request.url.path}{known}",
    }
    return refusal(Problem(status, details.get(status, str(error.detail))), error.headers)


HANDLERS: dict[type[Exception], Any] = {
    Problem: _refused,
    InvalidValue: _refused,
    StorageError: _refused,
    RequestValidationError: _not_valid,
    HTTPException: _not_found,
    Exception: _failed,
}


def _described(app: FastAPI) -> dict[str, Any]:
    """The interface as OpenAPI has it."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = found.setdefault("components", {})
        parts.setdefault("schemas", {})["Wrong"] = said.Wrong.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        app.openapi_schema = found
    return app.openapi_schema
