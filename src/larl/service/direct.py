"""The shortest way for decisions and rewards, which nearly all requests are.

A framework takes longer for a request than the rest of the service does. So these two are read by pydantic at once and
passed on. Whatever is not right with one of them goes the way of all others, on which it is refused with words: there
is one place for those.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import Request, Response
from pydantic import ValidationError

from larl.service import asked, writing
from larl.service.database import StorageError
from larl.service.door import Service, refusal
from larl.service.problems import Problem


class Route(NamedTuple):
    """A route as the log names it, how its path looks, what its body is and who answers."""

    path: str
    looks: re.Pattern[str]
    body: type[asked.Asked]
    answer: Callable[..., Awaitable[Response]]


ROUTES = (
    Route(
        "/v1/studies/{study}/decisions",
        re.compile(f"/v1/studies/(?P<study>{asked.NAME})/decisions"),
        asked.Moment,
        writing.decide,
    ),
    Route(
        "/v1/decisions/{decision}/reward",
        re.compile(f"/v1/decisions/(?P<decision>{asked.DECISION})/reward"),
        asked.Outcome,
        writing.reward,
    ),
)


class Direct:
    """An ASGI application in front of another, and behind the gate, from which a body comes in one piece."""

    def __init__(self, app: Any, here: Service) -> None:
        self.app, self.here = app, here

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "http" and scope["method"] == "POST" and _is_json(scope["headers"]):
            for route in ROUTES:
                names = route.looks.fullmatch(scope["path"])
                if names is not None:
                    await self._answer(route, names.groupdict(), scope, receive, send)
                    return
        await self.app(scope, receive, send)

    async def _answer(self, route: Route, names: dict[str, str], scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        try:
            body = route.body.model_validate_json(message["body"])
        except ValidationError:
            unread = [message]

            async def again() -> Any:
                return unread.pop() if unread else await receive()

            await self.app(scope, again, send)
            return
        try:
            holder = await self.here.who(Request(scope))
            response = await route.answer(body=body, here=self.here, holder=holder, **names)
        except (Problem, StorageError) as error:
            response = refusal(error)
        scope["route"] = route
        await response(scope, receive, send)


def _is_json(headers: Any) -> bool:
    return [value for name, value in headers if name == b"content-type"] == [b"application/json"]
