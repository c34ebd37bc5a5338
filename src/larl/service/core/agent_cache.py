"""Agents in memory, shared by all studies: up to a number of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Mapping

from larl.service.core.agents import AgentHandle

Place = tuple[str, str]  # study and unit, "" for a cohort


class AgentCache:
    """Agents up to `capacity` bytes. The study with the most gives up its agents first: those not used for longest.

    A cohort is counted and always stays. Studies are executed on several threads, so every method takes a lock. A
    handle that was evicted while its own study uses it is only forgotten: it is rebuilt when it is needed again.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.bytes = capacity, 0
        self._lock = threading.Lock()
        self._handles: dict[str, OrderedDict[str, AgentHandle]] = {}  # by study and unit
        self._sizes: dict[str, int] = {}  # bytes of the agents of a study that can be evicted

    def get(self, place: Place) -> AgentHandle | None:
        """Return an agent, None if it is not in memory; it is now the one that was used last."""
        with self._lock:
            handles = self._handles.get(place[0])
            handle = handles.get(place[1]) if handles else None
            if handle is not None and handles is not None:
                handles.move_to_end(place[1])
            return handle

    def of(self, study: str) -> list[tuple[Place, AgentHandle]]:
        """Return all agents of a study."""
        with self._lock:
            return [((study, unit), handle) for unit, handle in self._handles.get(study, {}).items()]

    def put(self, place: Place, handle: AgentHandle) -> list[tuple[Place, AgentHandle]]:
        """Add an agent; return those that were evicted."""
        with self._lock:
            self._remove(place)
            self._handles.setdefault(place[0], OrderedDict())[place[1]] = handle
            self._count(handle, handle.update_size())
            return self._evict(handle)

    def resize(self, handle: AgentHandle) -> None:
        """Count what an agent holds now, if it is still here."""
        with self._lock:
            handles = self._handles.get(handle.place[0])
            if handles is not None and handles.get(handle.place[1]) is handle:
                before = handle.size
                self._count(handle, handle.update_size() - before)

    def drop(self, place: Place) -> None:
        """Remove an agent."""
        with self._lock:
            self._remove(place)

    def clear(self) -> None:
        """Remove all agents."""
        with self._lock:
            self._handles.clear()
            self._sizes.clear()
            self.bytes = 0

    def _remove(self, place: Place) -> AgentHandle | None:
        handles = self._handles.get(place[0], OrderedDict())
        handle = handles.pop(place[1], None)
        if handle is not None:
            self._count(handle, -handle.size)
            if not handles:
                del self._handles[place[0]]
                self._sizes.pop(place[0], None)
        return handle

    def _count(self, handle: AgentHandle, change: int) -> None:
        self.bytes += change
        if not handle.config.is_pooled:
            study = handle.place[0]
            self._sizes[study] = self._sizes.get(study, 0) + change

    def _evict(self, kept: AgentHandle) -> list[tuple[Place, AgentHandle]]:
        """Remove agents until the others fit beside `kept`; return them."""
        evicted = []
        while self.bytes > self.capacity:
            studies = [study for study, handles in self._handles.items() if self._can_shrink(study, handles, kept)]
            if not studies:
                break
            study = max(studies, key=self._sizes.__getitem__)
            place = study, next(unit for unit, handle in self._handles[study].items() if handle is not kept)
            handle = self._remove(place)
            assert handle is not None
            evicted.append((place, handle))
        return evicted

    def _can_shrink(self, study: str, handles: Mapping[str, AgentHandle], kept: AgentHandle) -> bool:
        return study in self._sizes and (study != kept.place[0] or len(handles) > 1)
