"""Agents for the page: rebuilt from the journal, apart from those that decide."""

import math
import threading

from larl.service.core.agent_cache import AgentCache
from larl.service.core.agent_repository import AgentRepository
from larl.service.core.policy_timeout import PolicyRunner
from larl.service.core.state import StudyState, UnitState
from larl.service.queries.model_weights import Weights, has_model_weights, model_weights
from larl.service.storage.database import StorageError
from larl.service.storage.events import LEARNING_EVENTS, DamagedRow, Event
from larl.service.storage.journal import Journal
from larl.service.storage.tables import journal

CAPACITY = 64 * 2**20  # bytes for agents
MAX_EVENTS = 5_000  # that are read to rebuild one
TIME_LIMIT = 2.0  # seconds


class JournalSource:
    """The journal as a source of agents that are only looked at."""

    def __init__(self, source: Journal) -> None:
        self._journal = source
        self.snapshot, self.position = source.snapshot, source.position

    def learning_events(self, study: str, unit: str | None, after: int = 0) -> list[Event]:
        """Return the events from which an agent learns; raise OverflowError if there are too many."""
        where = (journal.c.study == study, journal.c.unit == unit, journal.c.seq > after)
        events = self._journal.select(*where, journal.c.kind.in_(LEARNING_EVENTS), limit=MAX_EVENTS + 1)
        if len(events) > MAX_EVENTS:
            raise OverflowError("there are too many events to read")
        return events


class Inspector:
    """Looks into the agents of units. It decides nothing and writes nothing."""

    def __init__(self, source: Journal) -> None:
        self._source, self._lock, self._runner = JournalSource(source), threading.Lock(), PolicyRunner(TIME_LIMIT)
        self._agents = AgentRepository(self._runner, AgentCache(CAPACITY))

    def clear(self) -> None:
        """Forget all agents: they are read again from the journal."""
        with self._lock:
            self._agents.clear()

    def close(self) -> None:
        """Stop."""
        self._runner.close()

    def has_weights(self, study: StudyState) -> bool:
        """Return whether the policy of a study weighs models."""
        return not study.config.is_pooled and has_model_weights(study.config.spec)

    def weights(self, study: StudyState, unit: str, number: int) -> Weights | None:
        """Return the model weights of a unit's policy; None without, or if it would take too long to find out."""
        if not self.has_weights(study):
            return None
        config = study.config
        with self._lock:
            try:
                self._agents.catch_up(self._source, config, unit)
                weights: Weights | None = self._agents.call(
                    self._source,
                    config,
                    UnitState(unit, number),
                    lambda handle: model_weights(config.spec, handle.agent.state),
                )
            except Exception as error:  # the service has recorded an issue when the policy failed
                if isinstance(error, StorageError) and not isinstance(error, DamagedRow):
                    raise
                self._agents.drop(config.study, unit)
                return None
        return weights if weights is None or all(map(math.isfinite, weights.values())) else None
