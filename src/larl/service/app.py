"""The service as an ASGI application: commands are plain Starlette routes, everything else is FastAPI."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from larl import __version__
from larl._core.validation import InvalidValue
from larl.service.core.alerts import Alerts
from larl.service.core.batch import Resources
from larl.service.core.command_queue import CommandQueue
from larl.service.core.problems import Problem
from larl.service.http.auth import Auth
from larl.service.http.command_route import CommandRoute
from larl.service.http.dependencies import Service
from larl.service.http.middleware import RequestMiddleware
from larl.service.http.problem_details import internal_error, problem_response, validation_problem
from larl.service.http.rate_limit import TokenBucket
from larl.service.http.readers import Readers
from larl.service.http.routes import commands, dashboard, queries, session, static
from larl.service.schemas.responses import ProblemDetails
from larl.service.settings import Settings
from larl.service.storage.database import Database, StorageError
from larl.service.storage.journal import Journal


class Application(Starlette):
    """A Starlette application with one layer of middleware, which also answers errors."""

    settings: Settings

    def build_middleware_stack(self) -> RequestMiddleware:
        """Return the middleware around the routes."""
        return RequestMiddleware(self.router, self.settings.max_body, local=not self.settings.auth)


def make_app(database: Database, settings: Settings | None = None) -> Application:
    """Return the application of a storage that this process can write."""
    settings = settings or Settings()
    journal = Journal(database)
    service = Service(settings, Auth(database), journal, TokenBucket(settings.rate))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        alerts = Alerts(settings.alert_url, settings.alert_command)
        url = database.url.render_as_string(hide_password=False)
        service.readers = Readers(Database(url, max_idle=database.max_idle), settings.read_rate)
        resources = Resources(journal, timeout=settings.timeout, memory=settings.memory, alert=alerts.send)
        service.commands = CommandQueue(resources)
        for close in (alerts.close, database.checkpoint, service.readers.close, service.commands.close):
            service.resources.callback(close)  # the last one is closed first
        yield
        service.resources.close()

    api = make_api()
    fast = [route.plain() for route in commands.router.routes if isinstance(route, CommandRoute)]
    others = Mount("/", api)
    others.path_regex = re.compile("^/(?P<path>.*)$", re.DOTALL)  # Starlette's pattern has no newline in a path
    app = Application(routes=[*fast, others], lifespan=lifespan)
    app.settings = settings
    app.state.service = api.state.service = service
    return app


def make_api() -> FastAPI:
    """Return the FastAPI application: queries, the page, and the description of the interface."""
    api = FastAPI(
        title="larl",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        exception_handlers=HANDLERS,
    )
    for part in (commands, queries, dashboard, session, static):
        api.include_router(part.router)
    api.openapi = lambda: _openapi(api)  # type: ignore[method-assign]
    return api


def _operation_id(route: APIRoute) -> str:
    return route.name


async def _refuse(_: Request, error: Any) -> Response:
    return problem_response(error)


async def _internal_error(request: Request, _: Any) -> Response:
    return problem_response(internal_error(request.scope))


async def _invalid_request(request: Request, error: Any) -> Response:
    """Report the first error of a request."""
    endpoint = request.scope["endpoint"]
    return problem_response(validation_problem(error.errors()[0], request.headers.get("content-type"), endpoint))


async def _no_route(request: Request, error: Any) -> Response:
    """Report an unknown path, or a method that a path does not have."""
    status = error.status_code if error.status_code in (404, 405) else 400
    details = {
        404: f"there is no such address: {request.url.path}; /openapi.json describes the interface",
        405: f"method {request.method} is not accepted at {request.url.path}; /openapi.json describes the interface",
    }
    return problem_response(Problem(status, details.get(status, str(error.detail))), error.headers)


HANDLERS: dict[Any, Any] = {
    Problem: _refuse,
    InvalidValue: _refuse,
    StorageError: _refuse,
    RequestValidationError: _invalid_request,
    HTTPException: _no_route,
    Exception: _internal_error,
}


def _openapi(api: FastAPI) -> dict[str, Any]:
    """Return the description of the interface."""
    if api.openapi_schema is None:
        schema = get_openapi(title=api.title, version=api.version, routes=api.routes)
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {})["ProblemDetails"] = ProblemDetails.model_json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        for unused in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(unused, None)
        api.openapi_schema = schema
    return api.openapi_schema
