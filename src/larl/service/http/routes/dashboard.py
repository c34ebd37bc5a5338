"""Routes of the page's overviews. With `after`, what the page knows already is not sent again."""

from typing import Any

from fastapi import APIRouter

from larl.service.http.dependencies import (
    AfterQuery,
    Caller,
    PageQuery,
    StudyName,
    UnitAfterQuery,
)
from larl.service.http.problem_details import error_responses
from larl.service.queries.overview import MAX_STEPS
from larl.service.schemas import dashboard
from larl.service.schemas.responses import ListPage

OVERVIEW_ROWS = 100  # that an overview of a study counts for
NOTHING_NEW: dict[int | str, Any] = {204: {"description": "No events after `after`."}}
router = APIRouter(prefix="/v1/studies/{study}", responses=error_responses(404) | NOTHING_NEW)


@router.get("/overview", response_model=dashboard.StudyOverview, tags=["studies"])
async def get_study_overview(study: StudyName, caller: Caller, query: AfterQuery) -> Any:
    """Return the counts, means and open issues of a study."""
    overviews = caller.require("read", study).readers.overviews
    return await caller.read(OVERVIEW_ROWS, lambda: overviews.study(study, query.after))


@router.get("/roster", response_model=ListPage[dashboard.UnitCounts], tags=["units"])
async def get_roster(study: StudyName, caller: Caller, page: PageQuery) -> Any:
    """Return units in order of registration, with their counts."""
    overviews = caller.require("read", study).readers.overviews
    return await caller.read_page(page, lambda *place: overviews.roster(study, *place))


@router.get("/unit-overview", response_model=dashboard.UnitOverview, tags=["units"])
async def get_unit_overview(study: StudyName, caller: Caller, query: UnitAfterQuery) -> Any:
    """Return the last steps of a unit, and the weights of its policy's models."""
    # The unit is no part of the path: browsers would drop a unit named "." or "..".
    overviews = caller.require("read", study).readers.overviews
    return await caller.read(MAX_STEPS, lambda: overviews.unit(study, query.unit, query.after))
