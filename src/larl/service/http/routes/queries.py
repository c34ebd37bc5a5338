"""Routes that only read."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, StreamingResponse

from larl import __version__
from larl.client import models
from larl.service.core.state import StudyState
from larl.service.export.csv import as_csv
from larl.service.export.table import Table
from larl.service.export.vw import as_vw
from larl.service.http.auth import Principal
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
from larl.service.http.readers import SLICE
from larl.service.schemas.requests import ExportFormat
from larl.service.schemas.responses import FailingHealth, ListPage
from larl.service.storage.database import StorageError

EXPORT_ROWS = 1000  # that an export counts for
TEXT: dict[int | str, Any] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for kind in ("text/csv", "text/plain")}}
}

FAILING: dict[int | str, Any] = {503: {"model": FailingHealth}}
router = APIRouter(prefix="/v1", responses=error_responses(404))


@router.get(
    "/health", response_model=models.Health, responses=FAILING, tags=["service"], openapi_extra={"security": [{}]}
)
def get_health(service: CurrentService) -> Any:
    """Check that the service can read and write its storage; 503 if not. No token is needed."""
    try:
        service.check_storage()
    except StorageError as error:
        failing = FailingHealth(status="failing", larl=__version__, detail=storage_problem(error).detail)
        return JSONResponse(failing.model_dump(), 503, HEADERS[503])
    return models.Health(status=models.ServiceStatus.OK, larl=__version__)


@router.get("/studies", response_model=list[models.StudyInfo], tags=["studies"])
async def list_studies(caller: Caller) -> Any:
    """Return the studies that the token may see."""
    queries, may = caller.service.readers.queries, caller.principal.may
    return await caller.read(
        0, lambda: _visible(queries.studies(lambda study: may("see", study)).values(), caller.principal)
    )


@router.get("/studies/{study}", response_model=models.StudyInfo, tags=["studies"])
async def get_study(study: StudyName, caller: Caller) -> Any:
    """Return a study and its policies. Only admins get its seed; others get null."""
    queries = caller.require("see", study).readers.queries
    return await caller.read(0, lambda: _visible([queries.state(study)], caller.principal)[0])


def _visible(studies: Iterable[StudyState], principal: Principal) -> list[dict[str, Any]]:
    """Return the studies that a principal may see, with seeds if it is an admin."""
    found = [vars(study.info()) for study in studies if principal.may("see", study.config.study)]
    return [study if principal.may("manage", study["study"]) else study | {"seed": None} for study in found]


@router.get("/studies/{study}/units", response_model=ListPage[models.UnitInfo], tags=["units"])
async def list_units(study: StudyName, caller: Caller, page: UnitPageQuery) -> Any:
    """Return the units of a study, in order of registration. `unit` finds one, also if it is named "." or ".."."""
    queries = caller.require("read", study).readers.queries
    return await caller.read_page(page, lambda *place: queries.units(study, page.unit, *place))


@router.get("/studies/{study}/units/{unit}", response_model=models.UnitInfo, tags=["units"])
async def get_unit(study: StudyName, unit: UnitName, caller: Caller) -> Any:
    """Return a unit."""
    queries = caller.require("read", study).readers.queries
    return await caller.read(1, lambda: queries.unit(study, unit))


@router.get("/studies/{study}/decisions", response_model=ListPage[models.DecisionRecord], tags=["decisions"])
async def list_decisions(study: StudyName, caller: Caller, page: UnitPageQuery) -> Any:
    """Return decisions with their rewards."""
    queries = caller.require("read", study).readers.queries
    return await caller.read_page(page, lambda *place: queries.decisions(study, page.unit, *place))


@router.get("/decisions/{decision}", response_model=models.DecisionRecord, tags=["decisions"])
async def get_decision(decision: DecisionId, caller: Caller) -> Any:
    """Return a decision with its reward."""
    queries = caller.require("read", decision.partition(".")[0]).readers.queries
    return await caller.read(1, lambda: queries.decision(decision))


@router.get("/studies/{study}/rewards", response_model=ListPage[models.RewardRecord], tags=["decisions"])
async def list_rewards(study: StudyName, caller: Caller, page: UnitPageQuery) -> Any:
    """Return rewards in order of arrival, with default rewards."""
    queries = caller.require("read", study).readers.queries
    return await caller.read_page(page, lambda *place: queries.rewards(study, page.unit, *place))


@router.get("/studies/{study}/issues", response_model=ListPage[models.Issue], tags=["issues"])
async def list_issues(study: StudyName, caller: Caller, page: PageQuery) -> Any:
    """Return issues, and how they were resolved."""
    queries = caller.require("read", study).readers.queries
    return await caller.read_page(page, lambda *place: queries.issues(study, *place))


@router.get("/studies/{study}/export", response_class=StreamingResponse, tags=["decisions"], responses=TEXT)
async def export_study(
    study: StudyName,
    caller: Caller,
    wanted: Annotated[ExportFormat, Query()],
) -> Any:
    """Return all decisions of a study with their rewards, as text; `larl export` has more formats."""
    readers = caller.require("read", study).readers
    await readers.admit(caller.principal.id, EXPORT_ROWS)

    def lines() -> Iterator[str]:
        readers.queries.state(study)
        table = Table(readers.journal, study)
        table.page_size = SLICE
        return as_csv(table) if wanted.format == "csv" else as_vw(table)

    kind = "text/csv" if wanted.format == "csv" else "text/plain"
    chunks = readers.chunks(await readers.run(lines))
    first = await anext(chunks, "")  # before the status is sent: a row may be damaged
    return StreamingResponse(_prepend(first, chunks), media_type=kind)


async def _prepend(first: str, others: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for each in others:
        yield each
