"""Commands that import steps of a pilot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from larl._core.validation import InvalidValue
from larl.client.models import DecisionSource, HistoryReceipt
from larl.service.core.commands import Command
from larl.service.core.handlers.base import PolicyCalls, Step, append
from larl.service.core.handlers.decisions import STEP_STORED
from larl.service.core.handlers.rewards import RewardHandlers
from larl.service.core.handlers.units import UnitHandlers
from larl.service.core.payloads import payload_json, plain_decision, service_decision
from larl.service.core.problems import Problem, conflict
from larl.service.core.state import StudyState, UnitState
from larl.service.core.study_config import StudyConfig
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import HistoryRequest, HistoryStep
from larl.service.storage.events import Event, EventKind, canonical_json
from larl.service.storage.journal import Transaction


class HistoryHandlers:
    """Imports steps that were made before the study. Each becomes a decision and a reward of the journal."""

    def __init__(
        self, studies: StudyRepository, policies: PolicyCalls, units: UnitHandlers, rewards: RewardHandlers
    ) -> None:
        self._studies, self._policies, self._units, self._rewards = studies, policies, units, rewards

    def import_steps(self, tx: Transaction, command: Command[HistoryRequest], at: str) -> Event:
        """Import all steps, or none. The event with the response precedes those of the steps."""
        study, steps = self._studies.open_study(command.study), command.body.steps
        self._check(tx, study.config, steps)
        event = self.begin(tx, command, at)
        for i, row in enumerate(steps):
            with _naming_step(i):  # PostgreSQL is asked for each unit: a transaction that is idle for long is ended
                unit = self._find_unit(tx, study, row.unit, at)
                self._add(Step(tx, study.config, unit, at), command.key, row)
        return event

    def begin(self, tx: Transaction, command: Command[HistoryRequest], at: str) -> Event:
        """Append the event of an import."""
        steps = command.body.steps
        units = len({step.unit for step in steps})
        payload = HistoryReceipt(study=command.study, steps=len(steps), units=units, at=at)
        return append(tx, command, payload, at, number=len(steps))

    def add_decision(self, step: Step, key: str, row: HistoryStep) -> Event:
        """Record the decision of a row as the next step of its unit; `key` is that of the import."""
        tx, config, unit, at = step
        self._policies.call(step, STEP_STORED, lambda agent: agent.record(unit.unit, row.arm, row.context))
        none = dict.fromkeys(config.arms, 0.0) if row.arm is None else {}
        decision = plain_decision(config, unit.number, unit.steps, row.arm, row.probabilities or none)
        response = payload_json(service_decision(config, unit.unit, decision, DecisionSource.HISTORY, at))
        request = canonical_json(stored_step(key, row))
        place: dict[str, Any] = {"unit": unit.unit, "ref": decision.id, "number": unit.steps, "key": row.id}
        event = tx.append(EventKind.DECISION, config.study, at, request, response, **place)
        unit.add_decision(unit.steps, decision.id, row.arm, imported=True)
        return event

    def _add(self, step: Step, key: str, row: HistoryStep) -> None:
        decision = self.add_decision(step, key, row)
        if row.arm is not None:
            self._rewards.import_reward(step, decision.number or 0, decision.ref or "", row.reward)

    def _find_unit(self, tx: Transaction, study: StudyState, name: str, at: str) -> UnitState:
        """Return a unit that has not decided in the study; raise 404 or 409."""
        unit = self._units.find_or_register(tx, study, name, at)
        if unit.has_decided:
            detail = f"unit {name} has decided in this study: its history must be imported before its first decision"
            raise conflict(detail, "unit", name, "a unit without decisions of its own")
        return unit

    def _check(self, tx: Transaction, config: StudyConfig, steps: list[HistoryStep]) -> None:
        """Raise InvalidValue for the first step that the study cannot have."""
        study, ids = config.study, set[str]()
        tx.preload([(study, EventKind.DECISION, step.id) for step in steps])
        for i, step in enumerate(steps):
            with _naming_step(i):
                if step.id in ids or tx.existing(study, EventKind.DECISION, step.id) is not None:
                    raise InvalidValue("history", "id", step.id, "an id that is new in the study")
                ids.add(step.id)
                config.check_decision(None, step.context)
                if step.arm is not None:
                    config.check_arm(step.arm)
                    config.check_probabilities(step.probabilities)
                    continue
                for name in ("reward", "probabilities"):
                    if getattr(step, name) is not None:
                        raise InvalidValue("history", name, getattr(step, name), "null, because the step has no arm")


def stored_step(key: str, row: HistoryStep) -> dict[str, Any]:
    """Return the request of an imported decision as the journal stores it; `key` is that of the import."""
    return {
        "history": key,
        "unit": row.unit,
        "arm": row.arm,
        "made": row.made,
        "probabilities": row.probabilities,
        "context": row.context,
    }


@contextmanager
def _naming_step(i: int) -> Iterator[None]:
    """Name the step in the refusal of a field."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidValue(error.owner, f"steps[{i}].{error.name}", error.value, error.accepted) from error
    except Problem as problem:
        more = problem.more | {"field": f"steps[{i}].{problem.more.get('field', 'unit')}"}
        raise Problem(problem.status, f"steps[{i}]: {problem.detail}", **more) from problem
