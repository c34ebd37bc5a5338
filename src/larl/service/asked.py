"""What the service is sent, as types."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from larl._core.validation import LARGEST
from larl.service.clock import stamp


def in_utc(text: str) -> str:
    """A time as the journal has it: of what clocks show where it was made, nothing is left to guess."""
    try:
        time = datetime.fromisoformat(text)
        if "T" in text and time.tzinfo is not None:
            return stamp(time)
    except (ValueError, OverflowError):
        pass
    raise ValueError("a time with its offset from UTC, such as 2026-11-16T08:30:00+01:00")


def in_json(spec: dict[str, Any]) -> dict[str, Any]:
    """A policy's spec, all of whose numbers JSON has."""
    try:
        json.dumps(spec, allow_nan=False)
    except ValueError:
        raise ValueError("a spec whose numbers are finite") from None
    return spec


NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
NAME_WORDS = "1 to 64 characters of a–z, 0–9, - and _, the first a letter or digit"
WORD = r"[A-Za-z0-9_.:-]{1,128}"
NO_CONTROL = r"^[^\x00-\x1f\x7f]+$"
NO_CONTROL_BUT_LINES = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"
DECISION = rf"{NAME}\.[0-9]{{1,18}}-[0-9]{{1,18}}-[0-9a-f]{{16}}"
PATTERNS = {  # what a pattern accepts
    f"^{NAME}$": NAME_WORDS,
    f"^{WORD}$": "1 to 128 characters of A–Z, a–z, 0–9, _ . : and -",
    f"^{DECISION}$": "the id of a decision, as the service returned it",
    NO_CONTROL: "text without control characters",
    NO_CONTROL_BUT_LINES: "text without control characters other than tabs and line breaks",
}
Arm = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_CONTROL)]
Name = Annotated[str, Field(pattern=f"^{NAME}$", examples=["sleep"])]
Unit = Annotated[str, Field(pattern=f"^{WORD}$", description="A pseudonym.", examples=["unit-17"])]
Key = Annotated[
    str,
    Field(
        pattern=f"^{WORD}$",
        examples=["unit-17-2026-11-16-morning"],
        description="By which a request is known again: the same key and payload get the same answer.",
    ),
]
Spec = Annotated[
    dict[str, Any],
    Field(examples=[{"policy": "LARL", "s": 5}], description="A policy's spec."),
    AfterValidator(in_json),
]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Chance = Annotated[float, Field(allow_inf_nan=False, ge=0.0, le=1.0)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(in_utc)]
Words = Annotated[str, Field(max_length=500, pattern=NO_CONTROL_BUT_LINES)]


class Asked(BaseModel):
    """A body of JSON types: no field that is not known, no type that is not meant."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def words(self, **more: Any) -> dict[str, Any]:
        """All but the key."""
        return {name: value for name, value in self.__dict__.items() if name != "key"} | more


class NewStudy(Asked):
    """A study to be made."""

    study: Name
    arms: Annotated[list[Arm], Field(min_length=2, max_length=1000)]
    policy: Spec
    seed: Annotated[int, Field(ge=0, lt=2**62)] | None = None
    floor: Chance = Field(0.0, description="The least probability of an available arm.")
    patience: Annotated[int, Field(ge=1, le=10_000)] = Field(
        50, description="A reward is learnt until its unit has made so many decisions, its own included."
    )
    pooling: Literal["none", "full", "partial"] = "none"
    horizon: Annotated[int, Field(ge=1, le=10**9)] | None = None
    default_reward: Number | None = Field(None, description="Counts where no reward came; null: it is missing.")
    fallback: dict[Arm, Chance] | None = Field(
        None, description="Probability of each arm where the policy fails; all alike unless given."
    )
    registration: Literal["first_decision", "explicit"] = "first_decision"


class NewPolicy(Asked):
    """Another policy for a study, from now on."""

    key: Key
    policy: Spec
    replaces: Annotated[int, Field(ge=1, le=10**6)] = Field(description="The version in force.")
    reason: Words
    floor: Chance | None = None


class Closing(Asked):
    """The end of a study."""

    reason: Words = ""


class NewUnit(Asked):
    """A unit to be registered."""

    unit: Unit


class Moment(Asked):
    """A moment at which an arm is wanted."""

    unit: Unit
    key: Key
    available: Annotated[list[Arm], Field(max_length=1000)] | None = Field(
        None, description="The arms that can be chosen; all unless given; none: [], with a reason."
    )
    reason: Words | None = Field(None, description="Why not all arms are available.")
    context: Annotated[list[Number], Field(max_length=1000)] | None = None


class Made(Asked):
    """A decision that the host made itself."""

    unit: Unit
    key: Key
    arm: Arm
    made: Time = Field(description="When, with its distance from UTC.", examples=["2026-11-16T08:30:00+01:00"])
    probabilities: dict[Arm, Chance] | None = Field(None, description="Of all arms, if they are known.")
    context: Annotated[list[Number], Field(max_length=1000)] | None = None
    reason: Words | None = None


class Outcome(Asked):
    """What came of a decision."""

    key: Key
    value: Number | None = Field(description="null: this moment passed without a reward.")
    arm: Arm | None = Field(None, description="What was done in fact, if not what was decided.")


class Delivery(Asked):
    """Whether what was decided reached the unit."""

    key: Key
    delivered: bool = True


class Resolution(Asked):
    """An issue that is dealt with."""

    note: Words


class Since(BaseModel):
    """What is known already."""

    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, lt=2**62)] = Field(0, description="The cursor: what comes after this row.")


class Exported(BaseModel):
    """As what a study is wanted: a table, or lines for Vowpal Wabbit."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["csv", "vw"] = "csv"


class Part(Since):
    """Which part of a list is wanted: `next` of the page before is the cursor."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class PartOfUnit(Part):
    """Which part of a list is wanted, of one unit or of all."""

    unit: Unit | None = None
