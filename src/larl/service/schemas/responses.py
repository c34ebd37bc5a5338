"""Schemas of responses, for OpenAPI: pages of lists, and problems. `larl.client.models` has the others."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from larl.client.models import DecisionRecord, Issue, RewardRecord, UnitInfo


class Schema(BaseModel):
    """A response without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class ListPage(Schema):
    """A page of a list; `next` is the cursor of the next one."""

    next: int | None


class UnitInfos(ListPage):
    """A page of units."""

    items: list[UnitInfo]


class DecisionRecords(ListPage):
    """A page of decisions."""

    items: list[DecisionRecord]


class RewardRecords(ListPage):
    """A page of rewards."""

    items: list[RewardRecord]


class Issues(ListPage):
    """A page of issues."""

    items: list[Issue]


class ProblemDetails(BaseModel):
    """Why a request is refused (application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None
    accepted: str | None = None
