"""Routes by which the page looks at studies. With `after`, what it knows already is not sent again."""

from typing import Any

from fastapi import APIRouter, Response

from larl.service import overview_models as models
from larl.service.door import Here, Part, Since, StudyName, UnitName, Who, need, refusals

NOTHING: dict[int | str, Any] = {204: {"description": "Nothing has happened after row `after`."}}
router = APIRouter(prefix="/v1/studies/{study}", responses=refusals(404) | NOTHING)


@router.get("/overview", response_model=models.StudyOverview, tags=["studies"], operation_id="get_study_overview")
def study(study: StudyName, here: Here, holder: Who, since: Since) -> Any:
    """A study at a glance."""
    need(holder, "read", study)
    return here.overviews.study(study, since.after) or Response(status_code=204)


@router.get("/roster", response_model=models.Roster, tags=["units"], operation_id="get_roster")
def roster(study: StudyName, here: Here, holder: Who, part: Part) -> Any:
    """Units as they entered, and how they are doing."""
    need(holder, "read", study)
    return here.overviews.roster(study, part.after, part.limit)


@router.get(
    "/units/{unit}/overview", response_model=models.UnitOverview, tags=["units"], operation_id="get_unit_overview"
)
def unit(study: StudyName, unit: UnitName, here: Here, holder: Who, since: Since) -> Any:
    """A unit at a glance: its last steps, and what its policy weighs."""
    need(holder, "read", study)
    return here.overviews.unit(study, unit, since.after) or Response(status_code=204)
