"""Commands about rewards and deliveries."""

from typing import Any

from larl.client.models import DeliveryReceipt, RewardReceipt, RewardStatus
from larl.service.core.commands import Command
from larl.service.core.handlers.base import PolicyCalls, Step, append
from larl.service.core.payloads import DefaultReward, payload_json
from larl.service.core.problems import not_found
from larl.service.core.study_config import StudyConfig
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import DeliveryRequest, Request, RewardRequest
from larl.service.storage.events import Event, EventKind, canonical_json
from larl.service.storage.journal import Transaction
from larl.service.storage.tables import journal

REWARD_STORED = "the reward was stored; the policy learns it when it works again"


class RewardHandlers:
    """Records rewards and deliveries, and fills in rewards that did not come."""

    def __init__(self, studies: StudyRepository, policies: PolicyCalls) -> None:
        self._studies, self._policies = studies, policies

    def reward(self, tx: Transaction, command: Command[RewardRequest], at: str) -> Event:
        """Record a reward. If the policy fails, its status is "stored"."""
        step, t = self._find(tx, command, at)
        config, unit, value, arm = step.config, step.unit, command.body.value, command.body.arm
        if arm is not None:
            config.check_arm(arm)
        elif value is not None and t not in unit.pending:
            self._check_available(tx, config, command.decision)
        status = self._observe(step, command.decision, value, arm, REWARD_STORED)
        payload = RewardReceipt(decision=command.decision, value=value, arm=arm, status=status, at=at)
        event = append(tx, command, payload, at, unit=unit.unit, ref=command.decision, number=t)
        unit.apply(event)
        return event

    def _check_available(self, tx: Transaction, config: StudyConfig, decision: str) -> None:
        """Raise InvalidValue if no arm was available. The agent would refuse it too, but it may not be there."""
        for event in tx.select(journal.c.ref == decision, journal.c.kind == EventKind.DECISION):
            if event.response["arm"] is None:
                config.check_arm(None, ": none was available at this decision")

    def _observe(
        self, step: Step, decision: str, value: float | None, arm: str | None, consequence: str
    ) -> RewardStatus:
        """Let the agent learn a reward; return its status."""
        status = self._policies.call(step, consequence, lambda agent: agent.observe(decision, value, arm))
        return RewardStatus(status or "stored")

    def fill_in_all(self, step: Step, consequence: str) -> None:
        """Record the default rewards of decisions whose reward is too late for the next decision."""
        for t, decision in step.unit.overdue(step.config.max_delay):
            self.fill_in(step, t, decision, consequence)

    def fill_in(self, step: Step, t: int, decision: str, consequence: str = REWARD_STORED) -> Event:
        """Record the default reward of a decision."""
        tx, config, unit, at = step
        value = config.default_reward
        request = {"decision": decision, "value": value, "arm": None}
        status = self._observe(step, decision, value, None, consequence)
        response = payload_json(DefaultReward(decision=decision, value=value, status=status, at=at))
        place: dict[str, Any] = {"unit": unit.unit, "ref": decision, "number": t}
        event = tx.append(EventKind.DEFAULT, config.study, at, canonical_json(request), response, **place)
        unit.apply(event)
        return event

    def import_reward(self, step: Step, t: int, decision: str, value: float | None) -> Event:
        """Record the reward of an imported step; None: it is missing."""
        tx, config, unit, at = step
        status = self._observe(step, decision, value, None, REWARD_STORED)
        payload = RewardReceipt(decision=decision, value=value, arm=None, status=status, at=at)
        request = canonical_json({"decision": decision, "value": value, "arm": None})
        place: dict[str, Any] = {"unit": unit.unit, "ref": decision, "number": t}
        event = tx.append(EventKind.REWARD, config.study, at, request, payload_json(payload), **place)
        unit.apply(event)
        return event

    def deliver(self, tx: Transaction, command: Command[DeliveryRequest], at: str) -> Event:
        """Record whether a decision reached its unit."""
        step, t = self._find(tx, command, at)
        payload = DeliveryReceipt(decision=command.decision, delivered=command.body.delivered, at=at)
        return append(tx, command, payload, at, unit=step.unit.unit, ref=command.decision, number=t)

    def _find(self, tx: Transaction, command: Command[Request], at: str) -> tuple[Step, int]:
        """Return the step that a command is about, and its number; raise 404 if the decision does not exist."""
        study, decision = self._studies.open_study(command.study), command.decision
        unit = self._studies.unit(tx, command.study, command.unit) if command.unit else None
        t = int(decision.rsplit("-", 2)[1])
        is_pending = unit is not None and decision == unit.pending.get(t)  # the usual case
        if unit is None or not (is_pending or self._exists(study.config, unit.number, unit.steps, t, decision)):
            raise not_found("decision", decision)
        return Step(tx, study.config, unit, at), t

    def _exists(self, config: StudyConfig, number: int, steps: int, t: int, decision: str) -> bool:
        return t < steps and config.decision_id(number, t) == decision
