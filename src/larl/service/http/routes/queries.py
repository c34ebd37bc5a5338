"""Routes that only read."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, StreamingResponse

from larl import __version__
from larl.client import models
from larl.service.export.csv import as_csv
from larl.service.export.table import Table
from larl.service.export.vw import as_vw
from larl.service.http.dependencies import (
    Caller,
    CurrentService,
    DecisionId,
    PageQuery,
    StudyName,
    UnitName,
    UnitPageQuery,
)
from larl.service.http.problem_details import HEADERS, error_responses, storage_problem
from larl.service.schemas.requests import ExportFormat
from larl.service.schemas.responses import FailingHealth, ListPage
from larl.service.storage.database import StorageError

EXPORT_LINES = 500  # sent at once
TEXT: dict[int | str, Any] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for kind in ("text/csv", "text/plain")}}
}

FAILING: dict[int | str, Any] = {503: {"model": FailingHealth}}
router = APIRouter(prefix="/v1", responses=error_responses(404))


@router.get(
    "/health", response_model=models.Health, responses=FAILING, tags=["service"], openapi_extra={"security": [{}]}
)
def get_health(service: CurrentService) -> Any:
    """Check that the service can read its storage; 503 if not. No token is needed."""
    try:
        service.queries.journal.select(limit=1)
    except StorageError as error:
        failing = FailingHealth(status="failing", larl=__version__, detail=storage_problem(error).detail)
        return JSONResponse(failing.model_dump(), 503, HEADERS[503])
    return models.Health(status=models.ServiceStatus.OK, larl=__version__)


@router.get("/studies", tags=["studies"])
def list_studies(caller: Caller) -> list[models.StudyInfo]:
    """Return the studies that the token may see."""
    studies = [state.info() for state in caller.service.queries.studies().values()]
    return [_visible(study, caller) for study in studies if caller.principal.may("see", study.study)]


@router.get("/studies/{study}", tags=["studies"])
def get_study(study: StudyName, caller: Caller) -> models.StudyInfo:
    """Return a study and its policies. Only admins get its seed; others get null."""
    return _visible(caller.require("see", study).queries.state(study).info(), caller)


def _visible(study: models.StudyInfo, caller: Caller) -> models.StudyInfo:
    return study if caller.principal.may("manage", study.study) else replace(study, seed=None)


@router.get("/studies/{study}/units", response_model=ListPage[models.UnitInfo], tags=["units"])
def list_units(study: StudyName, caller: Caller, page: PageQuery) -> Any:
    """Return the units of a study, in order of registration."""
    return caller.require("read", study).queries.units(study, page.after, page.limit)


@router.get("/studies/{study}/units/{unit}", response_model=models.UnitInfo, tags=["units"])
def get_unit(study: StudyName, unit: UnitName, caller: Caller) -> Any:
    """Return a unit."""
    return caller.require("read", study).queries.unit(study, unit)


@router.get("/studies/{study}/decisions", response_model=ListPage[models.DecisionRecord], tags=["decisions"])
def list_decisions(study: StudyName, caller: Caller, page: UnitPageQuery) -> Any:
    """Return decisions with their rewards."""
    return caller.require("read", study).queries.decisions(study, page.unit, page.after, page.limit)


@router.get("/decisions/{decision}", response_model=models.DecisionRecord, tags=["decisions"])
def get_decision(decision: DecisionId, caller: Caller) -> Any:
    """Return a decision with its reward."""
    return caller.require("read", decision.partition(".")[0]).queries.decision(decision)


@router.get("/studies/{study}/rewards", response_model=ListPage[models.RewardRecord], tags=["decisions"])
def list_rewards(study: StudyName, caller: Caller, page: UnitPageQuery) -> Any:
    """Return rewards in order of arrival, with default rewards."""
    return caller.require("read", study).queries.rewards(study, page.unit, page.after, page.limit)


@router.get("/studies/{study}/issues", response_model=ListPage[models.Issue], tags=["issues"])
def list_issues(study: StudyName, caller: Caller, page: PageQuery) -> Any:
    """Return issues, and how they were resolved."""
    return caller.require("read", study).queries.issues(study, page.after, page.limit)


@router.get("/studies/{study}/export", response_class=StreamingResponse, tags=["decisions"], responses=TEXT)
def export_study(
    study: StudyName,
    caller: Caller,
    wanted: Annotated[ExportFormat, Query()],
) -> Any:
    """Return all decisions of a study with their rewards, as text; `larl export` has more formats."""
    service = caller.require("read", study)
    service.queries.state(study)
    table = Table(service.queries.journal, study)
    lines, kind = (as_csv(table), "text/csv") if wanted.format == "csv" else (as_vw(table), "text/plain")
    return StreamingResponse(_chunks(lines), media_type=kind)


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Yield several lines at once: each chunk takes a turn of the event loop."""
    while chunk := list(islice(lines, EXPORT_LINES)):
        yield "".join(chunk)
