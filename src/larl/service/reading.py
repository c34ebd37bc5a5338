"""Routes that only read."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from larl import __version__
from larl.service import asked, said
from larl.service.access import Holder
from larl.service.door import DecisionId, Here, Part, PartOfUnit, StudyName, UnitName, Who, need, refusals
from larl.service.export import as_csv, as_vw
from larl.service.table import Table

LINES = 500  # of an export that are sent at once

router = APIRouter(prefix="/v1", responses=refusals(404))


@router.get(
    "/health", response_model=said.Health, tags=["service"], openapi_extra={"security": [{}]}, operation_id="get_health"
)
def health(here: Here) -> Any:
    """Whether the service can read its storage. No token is needed."""
    here.book.select(limit=1)
    return {"status": "ok", "larl": __version__}


@router.get("/studies", response_model=list[said.StudyInfo], tags=["studies"], operation_id="list_studies")
def studies(here: Here, holder: Who) -> Any:
    """The studies that the token may see."""
    found = [study for study in here.views.studies() if holder.may("see", study["study"])]
    return [_for(holder, study) for study in found]


@router.get("/studies/{study}", response_model=said.StudyInfo, tags=["studies"], operation_id="get_study")
def study(study: StudyName, here: Here, holder: Who) -> Any:
    """A study, and the policies that it had. Who may not read its decisions is not told its seed."""
    need(holder, "see", study)
    return _for(holder, here.views.study(study))


def _for(holder: Holder, study: dict[str, Any]) -> dict[str, Any]:
    return study if holder.may("read", study["study"]) else study | {"seed": None}


@router.get(
    "/studies/{study}/units", response_model=said.page_of(said.UnitInfo), tags=["units"], operation_id="list_units"
)
def units(study: StudyName, here: Here, holder: Who, part: Part) -> Any:
    """The units of a study, as they entered."""
    need(holder, "read", study)
    return here.views.units(study, part.after, part.limit)


@router.get("/studies/{study}/units/{unit}", response_model=said.UnitInfo, tags=["units"], operation_id="get_unit")
def unit(study: StudyName, unit: UnitName, here: Here, holder: Who) -> Any:
    """A unit."""
    need(holder, "read", study)
    return here.views.unit(study, unit)


@router.get(
    "/studies/{study}/decisions",
    response_model=said.page_of(said.DecisionState),
    tags=["decisions"],
    operation_id="list_decisions",
)
def decisions(study: StudyName, here: Here, holder: Who, part: PartOfUnit) -> Any:
    """Decisions, and what became of them."""
    need(holder, "read", study)
    return here.views.decisions(study, part.unit, part.after, part.limit)


@router.get("/decisions/{decision}", response_model=said.DecisionState, tags=["decisions"], operation_id="get_decision")
def decision(decision: DecisionId, here: Here, holder: Who) -> Any:
    """A decision, and what became of it."""
    need(holder, "read", decision.partition(".")[0])
    return here.views.decision(decision)


@router.get(
    "/studies/{study}/rewards",
    response_model=said.page_of(said.Reward),
    tags=["decisions"],
    operation_id="list_rewards",
)
def rewards(study: StudyName, here: Here, holder: Who, part: PartOfUnit) -> Any:
    """Rewards as they came, or as they were filled in."""
    need(holder, "read", study)
    return here.views.rewards(study, part.unit, part.after, part.limit)


@router.get(
    "/studies/{study}/issues", response_model=said.page_of(said.Issue), tags=["issues"], operation_id="list_issues"
)
def issues(study: StudyName, here: Here, holder: Who, part: Part) -> Any:
    """What went wrong, and what was done."""
    need(holder, "read", study)
    return here.views.issues(study, part.after, part.limit)


@router.get(
    "/studies/{study}/export",
    response_class=StreamingResponse,
    tags=["decisions"],
    responses={200: {"content": {kind: {"schema": {"type": "string"}} for kind in ("text/csv", "text/plain")}}},
    operation_id="export_study",
)
def export(study: StudyName, here: Here, holder: Who, wanted: Annotated[asked.Exported, Query()]) -> Any:
    """All decisions of a study, and what became of them, as text; `larl export` has more formats."""
    need(holder, "read", study)
    here.views.study(study)
    table = Table(here.book, study)
    lines, kind = (as_csv(table), "text/csv") if wanted.format == "csv" else (as_vw(table), "text/plain")
    return StreamingResponse(_in_parts(lines), media_type=kind)


def _in_parts(lines: Iterator[str]) -> Iterator[str]:
    """Some lines at once: each part is a turn of the event loop."""
    while part := list(islice(lines, LINES)):
        yield "".join(part)
