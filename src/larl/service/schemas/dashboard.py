"""Schemas of the page: sessions and overviews."""

from typing import Literal

from pydantic import Field

from larl.client.models import DecisionRecord, DecisionSource, Issue, RewardState, Severity
from larl.service.schemas.requests import Body
from larl.service.schemas.responses import Schema

Column = list[float | None]


class Login(Body):
    """A token, for which the browser gets a cookie."""

    token: str = Field(min_length=1, max_length=200)


class SessionInfo(Schema):
    """Who is logged in; nulls if nobody is."""

    token: str | None = Field(description="Id of the token, without its secret.")
    role: Literal["host", "analyst", "admin"] | None
    study: str | None = Field(description="* for all.")


class Columns(Schema):
    """Means over time, one number per bucket; null if there is nothing to average."""

    width: int = Field(description="Days or steps of a bucket.")
    decisions: list[int]
    shares: list[Column] = Field(description="Share of each arm in the order of `arms`, then that of all other arms.")
    probabilities: list[Column] = Field(description="Mean probability of each arm, in the same order.")
    reward: Column = Field(description="Mean reward of the bucket's decisions, whenever it came.")
    expected: Column = Field(description="Mean prediction for the chosen arms.")


class Days(Columns):
    """Means by day, in UTC."""

    start: list[str]


class Steps(Columns):
    """Means by step, over all units."""

    start: list[int]


class Overview(Schema):
    """Fields of every overview."""

    study: str
    seq: int = Field(description="Number of the last event that is counted.")
    at: str = Field(description="Time of the last event.")
    behind: int = Field(description="Number of events that are not counted yet: request again.")
    arms: list[str]


class StudyOverview(Overview):
    """Counts, means and open issues of a study."""

    units: int
    decisions: int = Field(description="Without imported steps, which no other number or mean counts either.")
    imported: int = Field(description="Number of imported steps.")
    other_arms: int = Field(description="Number of arms that are shown as one, those chosen least often.")
    days: Days
    steps: Steps
    states: dict[RewardState, int]
    sources: dict[DecisionSource, int]
    explored: int
    reward: float | None
    issues: dict[Severity, int] = Field(description="Number of open issues.")
    open: list[Issue] = Field(description="Open issues, the most severe first, 50 at most.")


class UnitCounts(Schema):
    """Counts of a unit."""

    unit: str
    number: int
    entered: str
    last: str | None = Field(description="Time of the last decision.")
    decisions: int = Field(description="Without imported steps.")
    imported: int = Field(description="Number of imported steps.")
    states: dict[RewardState, int]
    reward: float | None


class UnitOverview(Overview, UnitCounts):
    """Counts and last steps of a unit."""

    steps: list[DecisionRecord] = Field(description="The last 500.")
    has_weights: bool = Field(description="Whether the policy weighs models.")
    weights: dict[str, float] | None = Field(description="Weight of each model; null: none, or not known yet.")
