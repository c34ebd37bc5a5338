"""What the page is answered, as types."""

from typing import Literal

from pydantic import Field

from larl.service.asked import Asked
from larl.service.said import DecisionState, Issue, Said

Column = list[float | None]


class Login(Asked):
    """A token, for which a browser gets a cookie."""

    token: str = Field(min_length=1, max_length=200)


class Visitor(Said):
    """Who is logged in; nulls where nobody is."""

    token: str | None = Field(description="The id of the token, not what is secret of it.")
    role: Literal["host", "analyst", "admin"] | None
    study: str | None = Field(description="* for all.")


class Columns(Said):
    """Means over time, one number a bucket; null where there is nothing to take a mean of."""

    width: int = Field(description="Days or steps of a bucket.")
    decisions: list[int]
    shares: list[Column] = Field(description="How often each arm was chosen, in the order of `arms`; then the others.")
    probabilities: list[Column] = Field(description="With which probability, on average.")
    reward: Column = Field(description="Of the bucket's decisions, whenever it came.")
    expected: Column = Field(description="What the policy expected of the arms that it chose.")


class Days(Columns):
    """By day, in UTC."""

    start: list[str]


class Steps(Columns):
    """By step of the units, all of them together."""

    start: list[int]


class States(Said):
    """How many decisions are in each state."""

    pending: int
    observed: int
    corrected: int
    missing: int
    defaulted: int
    late: int
    unavailable: int


class Sources(Said):
    """Who made how many decisions."""

    policy: int
    fallback: int
    host: int
    unavailable: int


class Severities(Said):
    """How many issues are open."""

    red: int
    yellow: int
    green: int


class Looked(Said):
    """What every overview says."""

    study: str
    seq: int = Field(description="The last row that it knows of.")
    at: str = Field(description="When something happened last.")
    behind: int = Field(description="Rows of the journal still to be read: ask again.")
    arms: list[str]


class StudyOverview(Looked):
    """A study at a glance."""

    units: int
    decisions: int
    other_arms: int = Field(description="Arms that are shown together, those that were chosen least.")
    days: Days
    steps: Steps
    states: States
    sources: Sources
    explored: int
    reward: float | None
    issues: Severities
    open: list[Issue] = Field(description="Open issues, the gravest first, 50 at most.")


class UnitOnRoster(Said):
    """How a unit is doing."""

    unit: str
    number: int
    entered: str
    last: str | None = Field(description="When it decided last.")
    decisions: int
    states: States
    reward: float | None


class Roster(Said):
    """A page of units; `next` is the cursor of the one after it."""

    items: list[UnitOnRoster]
    next: int | None


class UnitOverview(Looked, UnitOnRoster):
    """A unit at a glance."""

    steps: list[DecisionState] = Field(description="The last 500.")
    weighs: bool = Field(description="Whether the policy weighs possible worlds.")
    evidence: dict[str, float] | None = Field(description="How much each of them; null: nothing, or not known yet.")
