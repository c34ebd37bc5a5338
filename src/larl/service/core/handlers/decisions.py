"""Commands about decisions."""

from functools import partial

from larl.client.models import DecisionSource
from larl.live.decision import Decision
from larl.service.core.agents import AgentHandle
from larl.service.core.commands import Command
from larl.service.core.handlers.base import PolicyCalls, Step, append
from larl.service.core.handlers.rewards import RewardHandlers
from larl.service.core.handlers.units import UnitHandlers
from larl.service.core.payloads import plain_decision, service_decision
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import DecisionRequest, ExternalDecisionRequest, Request
from larl.service.storage.events import Event
from larl.service.storage.journal import Transaction

FALLBACK_USED = "a decision was made with the fallback probabilities"
STEP_STORED = "the step was stored; the policy learns it when it works again"


class DecisionHandlers:
    """Decides, and records decisions that were made outside the service."""

    def __init__(
        self, studies: StudyRepository, policies: PolicyCalls, units: UnitHandlers, rewards: RewardHandlers
    ) -> None:
        self._studies, self._policies, self._units, self._rewards = studies, policies, units, rewards

    def decide(self, tx: Transaction, command: Command[DecisionRequest], at: str) -> Event:
        """Decide for a unit, with the fallback probabilities if the policy fails."""
        study, available, context = (
            self._studies.open_study(command.study),
            command.body.available,
            command.body.context,
        )
        config = study.config
        config.check_decision(available, context)
        unit = self._units.find_or_register(tx, study, command.unit, at)
        step, number, t = Step(tx, config, unit, at), unit.number, unit.steps
        self._rewards.fill_in_all(step, FALLBACK_USED)
        if available is not None and not available:
            self._policies.call(step, STEP_STORED, lambda agent: agent.record(unit.unit, None, context))
            none = plain_decision(config, number, t, None, dict.fromkeys(config.arms, 0.0))
            return self._append(step, command, none, DecisionSource.UNAVAILABLE)
        decide = partial(AgentHandle.decide, unit=unit.unit, available=available, context=context, at=at)
        decision = self._policies.call(step, FALLBACK_USED, decide)
        if decision is None:
            drawn = plain_decision(config, number, t, *config.draw_fallback(number, t, available))
            return self._append(step, command, drawn, DecisionSource.FALLBACK)
        self._policies.record_success(step)
        return self._append(step, command, decision, DecisionSource.POLICY)

    def ingest(self, tx: Transaction, command: Command[ExternalDecisionRequest], at: str) -> Event:
        """Record a decision that was made outside the service."""
        study, body = self._studies.open_study(command.study), command.body
        config = study.config
        config.check_arm(body.arm)
        config.check_decision(None, body.context)
        probabilities = config.check_probabilities(body.probabilities)
        unit = self._units.find_or_register(tx, study, command.unit, at)
        step = Step(tx, config, unit, at)
        self._rewards.fill_in_all(step, STEP_STORED)
        self._policies.call(step, STEP_STORED, lambda agent: agent.record(unit.unit, body.arm, body.context))
        decision = plain_decision(config, unit.number, unit.steps, body.arm, probabilities)
        return self._append(step, command, decision, DecisionSource.HOST)

    def _append(self, step: Step, command: Command[Request], decision: Decision, source: DecisionSource) -> Event:
        tx, config, unit, at = step
        payload = service_decision(config, unit.unit, decision, source, at)
        event = append(tx, command, payload, at, unit=unit.unit, ref=decision.id, number=unit.steps)
        unit.add_decision(unit.steps, decision.id, decision.arm)
        return event
