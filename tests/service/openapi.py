"""The OpenAPI description of the service, as it publishes it at /openapi.json."""

from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from larl.service.app import make_app


def mounted_api(app: Starlette) -> FastAPI:
    """Return the FastAPI application within the service."""
    (api,) = [route.app for route in app.routes if isinstance(route, Mount)]
    assert isinstance(api, FastAPI)
    return api


DESCRIPTION: dict[str, Any] = mounted_api(make_app(None)).openapi()  # type: ignore[arg-type]  # it needs no storage
