"""What the handlers of commands have in common."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from larl.service.core.agent_repository import AgentRepository
from larl.service.core.agents import AgentHandle
from larl.service.core.commands import Command
from larl.service.core.issues import IssueLog
from larl.service.core.payloads import payload_json
from larl.service.core.policy_timeout import CircuitOpen
from larl.service.core.state import UnitState
from larl.service.core.study_config import StudyConfig
from larl.service.schemas.requests import Request
from larl.service.storage.database import STORAGE_ERRORS
from larl.service.storage.events import DamagedRow, Event, canonical_json
from larl.service.storage.journal import Transaction

Result = TypeVar("Result")


def append(tx: Transaction, command: Command[Request], payload: Any, at: str, **columns: Any) -> Event:
    """Append the event of a command with its response."""
    request_json = canonical_json(command.request())
    return tx.append(command.kind, command.study, at, request_json, payload_json(payload), key=command.key, **columns)


class Step(NamedTuple):
    """A unit's step: the transaction that records it, its study and unit, and the time."""

    tx: Transaction
    config: StudyConfig
    unit: UnitState
    at: str


class PolicyCalls:
    """Calls the policies of units. A policy that fails is reported as an issue; the command goes on without it."""

    def __init__(self, agents: AgentRepository, issues: IssueLog) -> None:
        self._agents, self._issues = agents, issues

    def call(self, step: Step, consequence: str, use: Callable[[AgentHandle], Result]) -> Result | None:
        """Return `use(agent)`, None if the policy fails; `consequence` says what the service does then."""
        tx, config, unit, at = step
        try:
            return self._agents.call(tx, config, unit, use)
        except DamagedRow as error:
            code, happened = "damage", error.reason
        except STORAGE_ERRORS:
            raise
        except CircuitOpen:
            return None
        except Exception as error:
            code, happened = "policy", f"the policy failed: {type(error).__name__}: {error}"
        self._agents.record_failure(config, unit.unit)
        self._issues.record(tx, config.study, "red", code, unit.unit, happened[:500], consequence, at)
        return None

    def record_success(self, step: Step) -> None:
        """Note that a policy has decided."""
        self._agents.record_success(step.config, step.unit.unit)
