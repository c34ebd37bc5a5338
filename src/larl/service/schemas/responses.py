"""Schemas of responses, for OpenAPI: pages of lists, and problems. `larl.client.models` has the others."""

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")


class Schema(BaseModel):
    """A response without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class ListPage(Schema, Generic[Item]):
    """A page of a list; `next` is the cursor of the next one."""

    items: list[Item]
    next: int | None


class FailingHealth(Schema):
    """State of a service that cannot use its storage."""

    status: Literal["failing"]
    larl: str
    detail: str


class ProblemDetails(BaseModel):
    """Why a request is refused (application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None
    accepted: str | None = None
