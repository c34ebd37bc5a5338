"""Routes that change something. What is asked is checked and passed on; the answer comes once it is on the disk."""

from fastapi import APIRouter, Response

from larl.service import asked, said
from larl.service.door import DecisionId, Here, IssueNumber, StudyName, Who, need, refusals
from larl.service.terms import Terms

router = APIRouter(prefix="/v1", responses=refusals(404, 409))


@router.post("/studies", response_model=said.StudyMade, tags=["studies"], operation_id="create_study")
async def make_study(body: asked.NewStudy, here: Here, holder: Who) -> Response:
    """Make a study. The same again gets the same answer."""
    need(holder, "manage", body.study)
    words = body.words()
    await here.prepare(lambda: Terms.of(words))
    del words["study"]
    return await here.do("study", body.study, body.study, words)


@router.post(
    "/studies/{study}/policy", response_model=said.PolicyChanged, tags=["studies"], operation_id="change_policy"
)
async def change_policy(study: StudyName, body: asked.NewPolicy, here: Here, holder: Who) -> Response:
    """Put another policy in force. It learns from all that happened before; the old one stays on record."""
    need(holder, "manage", study)
    await here.prepare(lambda: here.views.terms(study).changed(body.policy, body.floor))
    return await here.do("policy", study, body.key, body.words())


@router.post("/studies/{study}/close", response_model=said.Closed, tags=["studies"], operation_id="close_study")
async def close_study(study: StudyName, body: asked.Closing, here: Here, holder: Who) -> Response:
    """End a study: it stays to be read."""
    need(holder, "manage", study)
    return await here.do("closed", study, "closed", body.words())


@router.post("/studies/{study}/units", response_model=said.UnitInfo, tags=["units"], operation_id="register_unit")
async def register(study: StudyName, body: asked.NewUnit, here: Here, holder: Who) -> Response:
    """Register a unit."""
    need(holder, "write", study)
    return await here.do("unit", study, body.unit, body.words(), body.unit)


@router.post("/studies/{study}/decisions", response_model=said.DecisionMade, tags=["decisions"], operation_id="decide")
async def decide(study: StudyName, body: asked.Moment, here: Here, holder: Who) -> Response:
    """Decide for a unit."""
    need(holder, "write", study)
    return await here.do("decision", study, body.key, body.words(), body.unit)


@router.post(
    "/studies/{study}/ingest", response_model=said.DecisionMade, tags=["decisions"], operation_id="ingest_decision"
)
async def ingest(study: StudyName, body: asked.Made, here: Here, holder: Who) -> Response:
    """Take in a decision that the host made itself, as the next of its unit."""
    need(holder, "write", study)
    return await here.do("ingest", study, body.key, body.words(), body.unit)


@router.post(
    "/decisions/{decision}/reward", response_model=said.RewardTaken, tags=["decisions"], operation_id="record_reward"
)
async def reward(decision: DecisionId, body: asked.Outcome, here: Here, holder: Who) -> Response:
    """Say what came of a decision."""
    study = decision.partition(".")[0]
    need(holder, "write", study)
    return await here.do("reward", study, body.key, {"decision": decision} | body.words())


@router.post(
    "/decisions/{decision}/delivered", response_model=said.Delivered, tags=["decisions"], operation_id="record_delivery"
)
async def delivered(decision: DecisionId, body: asked.Delivery, here: Here, holder: Who) -> Response:
    """Say whether what was decided reached the unit."""
    study = decision.partition(".")[0]
    need(holder, "write", study)
    return await here.do("delivered", study, body.key, {"decision": decision} | body.words())


@router.post(
    "/studies/{study}/issues/{issue}/resolved",
    response_model=said.Resolved,
    tags=["issues"],
    operation_id="resolve_issue",
)
async def resolve(study: StudyName, issue: IssueNumber, body: asked.Resolution, here: Here, holder: Who) -> Response:
    """Say that an issue is dealt with."""
    need(holder, "resolve", study)
    return await here.do("resolved", study, str(issue), body.words(issue=issue))
