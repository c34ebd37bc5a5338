"""Commands about rewards and deliveries."""

from collections.abc import Iterator

from larl.client.models import DeliveryReceipt, RewardReceipt, RewardStatus
from larl.service.core.commands import Command
from larl.service.core.handlers.base import PolicyCalls, append
from larl.service.core.payloads import DefaultReward, payload_json
from larl.service.core.problems import not_found
from larl.service.core.state import StudyState, UnitState
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
        study, unit, t = self._decision(tx, command)
        config, body = study.config, command.body
        if body.arm is not None:
            config.check_arm(body.arm)
        elif body.value is not None and t not in unit.pending:
            self._check_available(tx, config, command.decision)
        status = self._observe(tx, config, unit, command.decision, body.value, body.arm, at, REWARD_STORED)
        payload = RewardReceipt(decision=command.decision, value=body.value, arm=body.arm, status=status, at=at)
        event = append(tx, command, payload, at, unit=unit.unit, ref=command.decision, number=t)
        unit.apply(event)
        return event

    def _check_available(self, tx: Transaction, config: StudyConfig, decision: str) -> None:
        """Raise InvalidValue if no arm was available. The agent would refuse it too, but it may not be there."""
        for event in tx.select(journal.c.ref == decision, journal.c.kind == EventKind.DECISION):
            if event.response["arm"] is None:
                config.check_arm(None, ": none was available at this decision")

    def _observe(
        self,
        tx: Transaction,
        config: StudyConfig,
        unit: UnitState,
        decision: str,
        value: float | None,
        arm: str | None,
        at: str,
        consequence: str,
    ) -> RewardStatus:
        """Let the agent learn a reward; return its status."""
        status = self._policies.call(
            tx, config, unit, at, consequence, lambda agent: agent.observe(decision, value, arm)
        )
        return RewardStatus(status or "stored")

    def fill_in_overdue(
        self, tx: Transaction, config: StudyConfig, unit: UnitState, at: str, consequence: str = REWARD_STORED
    ) -> Iterator[Event]:
        """Record the default rewards of decisions whose reward is too late for the next decision."""
        for t, decision in unit.overdue(config.max_delay):
            yield self._fill_in(tx, config, unit, t, decision, at, consequence)

    def _fill_in(
        self,
        tx: Transaction,
        config: StudyConfig,
        unit: UnitState,
        t: int,
        decision: str,
        at: str,
        consequence: str,
    ) -> Event:
        value = config.default_reward
        status = self._observe(tx, config, unit, decision, value, None, at, consequence)
        request_json = canonical_json({"decision": decision, "value": value, "arm": None})
        payload = DefaultReward(decision=decision, value=value, status=status, at=at)
        event = tx.append(
            EventKind.DEFAULT,
            config.study,
            at,
            request_json,
            payload_json(payload),
            unit=unit.unit,
            ref=decision,
            number=t,
        )
        unit.apply(event)
        return event

    def deliver(self, tx: Transaction, command: Command[DeliveryRequest], at: str) -> Event:
        """Record whether a decision reached its unit."""
        _, unit, t = self._decision(tx, command)
        payload = DeliveryReceipt(decision=command.decision, delivered=command.body.delivered, at=at)
        return append(tx, command, payload, at, unit=unit.unit, ref=command.decision, number=t)

    def _decision(self, tx: Transaction, command: Command[Request]) -> tuple[StudyState, UnitState, int]:
        """Return study, unit and step of a command's decision; raise 404 if it does not exist."""
        study, decision = self._studies.open_study(command.study), command.decision
        unit = self._studies.unit(tx, command.study, command.unit) if command.unit else None
        t = int(decision.rsplit("-", 2)[1])
        if unit is not None and decision == unit.pending.get(t):  # the usual case
            return study, unit, t
        if unit is None or t >= unit.steps or study.config.decision_id(unit.number, t) != decision:
            raise not_found("decision", decision)
        return study, unit, t
