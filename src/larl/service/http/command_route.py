"""Routes of commands. Starlette serves them; FastAPI only describes them, because its routing takes too long.

A decision or a reward takes less time than FastAPI's injection of dependencies. All steps are the functions that the
other routes use: `Service.authenticate`, pydantic models, `validation_problem`.
"""

from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.routing import Route

from larl.service.core.problems import Problem
from larl.service.http.dependencies import Call
from larl.service.http.problem_details import content_type_problem, validation_problem

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CommandRoute(APIRoute):
    """A route whose endpoint takes `body`, `caller` and the parameters of its path."""

    def get_route_handler(self) -> Handler:
        """Return a handler that authenticates, validates and calls the endpoint."""
        hints = get_type_hints(self.endpoint, include_extras=True)
        body_type = TypeAdapter(hints["body"])
        parameters = {name: TypeAdapter(hints[name]) for name in self.param_convertors}

        async def handle(request: Request) -> Response:
            request.scope["larl.log"]["route"] = self.path
            service, content_type = request.app.state.service, request.headers.get("content-type")
            caller = Call(service, await service.authenticate(request))
            place: tuple[str, ...] = ("body",)
            try:
                path = {}
                for name, kind in parameters.items():
                    place = ("path", name)
                    path[name] = kind.validate_strings(request.path_params[name])
                place = ("body",)
                body = body_type.validate_json(_json_body(request, content_type))
            except ValidationError as invalid:
                error = invalid.errors(include_url=False)[0]
                raise validation_problem(
                    {**error, "loc": place + error["loc"]}, content_type, self.endpoint
                ) from invalid
            response: Response = await self.endpoint(body=body, caller=caller, **path)
            return response

        return handle

    def plain(self) -> Route:
        """Return the same route for a Starlette application."""
        return Route(self.path, _Endpoint(self.get_route_handler()), methods=["POST"])


class _Endpoint:
    """A handler as an ASGI application; the application's own exception handlers are enough."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        response = await self._handler(Request(scope, receive, send))
        await response(scope, receive, send)


def _json_body(request: Request, content_type: str | None) -> bytes:
    """Return the body, which the middleware has read; raise 415 unless it is declared as JSON, 422 if it is empty."""
    body: bytes = request.scope["larl.body"]
    if not body:
        raise Problem(422, "the body is missing; accepted: a JSON object", field="body", accepted="a JSON object")
    if content_type != "application/json":
        kind = (content_type or "").partition(";")[0].strip().lower()
        is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
        if not is_json:
            raise content_type_problem(content_type)
    return body
