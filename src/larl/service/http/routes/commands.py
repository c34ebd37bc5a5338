"""Routes that append to the journal. The response is sent when it is on disk."""

from fastapi import APIRouter, Response

from larl.client import models
from larl.service.core import payloads
from larl.service.core.study_config import StudyConfig
from larl.service.http.command_route import CommandRoute
from larl.service.http.dependencies import Caller, DecisionId, IssueNumber, StudyName
from larl.service.http.problem_details import error_responses
from larl.service.queries.journal_queries import JournalQueries
from larl.service.schemas import requests

router = APIRouter(prefix="/v1", responses=error_responses(404, 409), route_class=CommandRoute)


@router.post("/studies/{study}/decisions", response_model=models.ServiceDecision, tags=["decisions"])
async def decide(study: StudyName, body: requests.DecisionRequest, caller: Caller) -> Response:
    """Decide for a unit."""
    return await caller.require("write", study).execute(study, body.key, body, unit=body.unit)


@router.post("/decisions/{decision}/reward", response_model=models.RewardReceipt, tags=["decisions"])
async def record_reward(decision: DecisionId, body: requests.RewardRequest, caller: Caller) -> Response:
    """Record the reward of a decision."""
    study = decision.partition(".")[0]
    return await caller.require("write", study).execute(study, body.key, body, decision=decision)


@router.post("/decisions/{decision}/delivered", response_model=models.DeliveryReceipt, tags=["decisions"])
async def record_delivery(decision: DecisionId, body: requests.DeliveryRequest, caller: Caller) -> Response:
    """Record whether a decision reached its unit."""
    study = decision.partition(".")[0]
    return await caller.require("write", study).execute(study, body.key, body, decision=decision)


@router.post("/studies/{study}/ingest", response_model=models.ServiceDecision, tags=["decisions"])
async def ingest_decision(study: StudyName, body: requests.ExternalDecisionRequest, caller: Caller) -> Response:
    """Record a decision that was made outside the service, as the next one of its unit."""
    return await caller.require("write", study).execute(study, body.key, body, unit=body.unit)


@router.post("/studies/{study}/history", response_model=models.HistoryReceipt, tags=["decisions"])
async def import_history(study: StudyName, body: requests.HistoryRequest, caller: Caller) -> Response:
    """Import steps of a pilot, all or none, before the first decisions of their units."""
    return await caller.require("manage", study).execute(study, body.key, body)


@router.post("/studies", response_model=payloads.StudyCreated, tags=["studies"])
async def create_study(body: requests.NewStudy, caller: Caller) -> Response:
    """Create a study. A repeated request gets the same response."""
    service = caller.require("manage", body.study)
    await service.compile(lambda: StudyConfig.create(vars(body)))
    return await service.execute(body.study, body.study, body)


@router.post("/studies/{study}/policy", response_model=payloads.PolicyChanged, tags=["studies"])
async def change_policy(study: StudyName, body: requests.NewPolicy, caller: Caller) -> Response:
    """Replace the policy. The new one learns from all earlier decisions; the old one stays on record."""
    service = caller.require("manage", study)
    queries = JournalQueries(service.journal)
    new = (body.policy, body.min_probability, body.allocation)
    await service.compile(lambda: queries.state(study).config.with_policy(*new))
    return await service.execute(study, body.key, body)


@router.post("/studies/{study}/close", response_model=models.ClosedStudy, tags=["studies"])
async def close_study(study: StudyName, body: requests.CloseStudyRequest, caller: Caller) -> Response:
    """Close a study: it accepts no more decisions and rewards, and can still be read."""
    return await caller.require("manage", study).execute(study, "closed", body)


@router.post("/studies/{study}/units", response_model=models.UnitInfo, tags=["units"])
async def register_unit(study: StudyName, body: requests.NewUnit, caller: Caller) -> Response:
    """Register a unit."""
    return await caller.require("write", study).execute(study, body.unit, body, unit=body.unit)


@router.post("/studies/{study}/issues/{issue}/resolved", response_model=models.ResolvedIssue, tags=["issues"])
async def resolve_issue(
    study: StudyName,
    issue: IssueNumber,
    body: requests.Resolution,
    caller: Caller,
) -> Response:
    """Mark an issue as resolved."""
    return await caller.require("resolve", study).execute(study, str(issue), body, issue=issue)
