"""A running agent or cohort as bytes and back, fast and exactly, for the same code and the same settings.

A file (`files.py`) has one checkpoint and replays the steps since then. A snapshot has the State and all checkpoints,
so nothing is replayed. It does not protect itself: whoever stores it adds a checksum.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from larl._core.states import Memory
from larl.live.agent import Agent
from larl.live.cohort import Cohort
from larl.live.decision import RewardStatus
from larl.live.history import Checkpoint
from larl.live.log_checks import check_counts, check_integers, check_names, check_time
from larl.live.schedule import Update
from larl.live.shared_history import LOG_COLUMNS, SharedCheckpoint, SharedHistory
from larl.live.snapshot_checks import (
    check_own_times,
    check_shared_states,
    check_shared_times,
    check_steps,
    check_units,
    fill,
    take,
)
from larl.policies._bounds import check_state

STEPS = ("arm", "reward", "pending", "context")
UNIT_BYTES, STEP_BYTES = 1_500, 40  # of Python objects, in a cohort
SPARSE = 4096  # bytes from which on zeros are left out


def dump(agent: Agent | Cohort) -> bytes:
    """Return an agent, or a cohort whose units share what they learn, as bytes."""
    history = agent._history
    values, arrays = _dump_shared(history) if isinstance(history, SharedHistory) else _dump_own(history)
    if isinstance(agent, Cohort):
        values["units"] = list(agent.units)
    updates = agent._schedule.updates
    values["updates"] = [[unit, update.number] for unit, update in updates.items()]
    arrays += [update.memory.own for update in updates.values()]
    parts = [_encode(array) for array in arrays]
    kinds = [[array.dtype.str, array.shape, *map(len, part)] for array, part in zip(arrays, parts, strict=True)]
    header = json.dumps(values | {"counts": agent.counts, "arrays": kinds}).encode()
    return b"".join([len(header).to_bytes(4, "little"), header, *(piece for part in parts for piece in part)])


def restore(agent: Agent | Cohort, data: bytes) -> None:
    """Give a new agent or cohort the state that `dump` wrote; raise ValueError or KeyError if it does not fit."""
    end = 4 + int.from_bytes(data[:4], "little")
    values = json.loads(data[4:end])
    arrays = _decode_all(values["arrays"], data, end)
    history: Any = agent._history
    if isinstance(agent, Cohort):
        for unit in check_names("units", values["units"]):
            agent.enter(unit)
        check_shared_times(values, history.units)
        _restore_shared(history, values, arrays)
        check_shared_states(history, agent._new_unit)
    else:
        check_own_times(values, history.max_delay)
        initial = agent._initial_memory().state()
        _restore_own(history, values, arrays)
        blocks = [history.memory.own[0], *(each.block for each in _own_checkpoints(history) if each is not None)]
        for block in blocks:
            check_state(initial, history.memory.state_in(block, history.memory.shared))
    check_steps(history, agent._log_sizes())
    _restore_updates(agent, values["updates"], arrays)
    if next(arrays, None) is not None:
        raise ValueError("a snapshot has more arrays than its agent")
    agent.counts = check_counts(values["counts"], list(RewardStatus))


def _restore_updates(agent: Agent | Cohort, updates: Any, arrays: Iterator[Any]) -> None:
    """Give an agent or a cohort the States of its last updates."""
    initial = Memory(agent._new_unit) if isinstance(agent, Cohort) else agent._initial_memory()
    units = len(agent.units) if isinstance(agent, Cohort) else 1
    for unit, number in updates:
        memory = initial.copy()
        fill([memory.own], arrays)
        check_state(initial.state(), memory.state())
        agent._schedule.keep(check_time("unit", unit, 0, units - 1), Update(check_time("number", number), memory))


def memory(agent: Agent | Cohort, state_size: int) -> int:
    """Return the bytes that an agent or a cohort holds; `state_size` is that of the State of one unit."""
    return _history_memory(agent._history, state_size) + len(agent._schedule.updates) * state_size


def _history_memory(history: Any, state_size: int) -> int:
    """Return the bytes of the history of an agent or a cohort."""
    if isinstance(history, SharedHistory):
        arrays = [history.memory.shared, history.memory.own, history.memory.words]
        arrays += [block for each in history.checkpoints for block in (each.shared, each.own)]
        arrays += [getattr(history, name) for name in LOG_COLUMNS]
        others = UNIT_BYTES * history.units + STEP_BYTES * history.row(history.end)
        return sum(int(array.nbytes) for array in arrays) + others
    copies = 1 + sum(each is not None for each in _own_checkpoints(history))
    return copies * state_size + sum(int(getattr(history, name).nbytes) for name in STEPS)


def _encode(array: Any) -> list[bytes]:
    """Return the bytes of an array, or, for a large one with many zeros, which words are not zero and these words."""
    plain = np.ascontiguousarray(array)
    if plain.nbytes >= SPARSE and plain.itemsize == 8:
        words = plain.reshape(-1).view(np.uint64)  # −0.0 is not a zero
        kept = words != 0
        some = words[kept]
        if some.nbytes < 0.8 * plain.nbytes:
            return [np.packbits(kept).tobytes(), some.tobytes()]
    return [plain.tobytes()]


def _decode_all(kinds: Any, data: bytes, start: int) -> Iterator[Any]:
    """Yield the arrays of a snapshot."""
    for kind, shape, *lengths in kinds:
        check_integers("lengths", [*shape, *lengths], 0, len(data) * 64)
        pieces = []
        for length in lengths:
            pieces.append(data[start : start + length])
            start += length
        if kind == "|b1" and pieces[0].strip(b"\0\1"):
            raise ValueError("a byte is neither true nor false")
        if len(pieces) == 1:
            yield np.frombuffer(pieces[0], dtype=kind).reshape(shape)
        elif len(pieces[0]) != -(-math.prod(shape) // 8):
            raise ValueError(f"an array of shape {shape} has {len(pieces[0])} bytes of flags")
        else:
            words = np.zeros(math.prod(shape), dtype=np.uint64)
            kept = np.unpackbits(np.frombuffer(pieces[0], dtype=np.uint8), count=words.size).view(np.bool_)
            words[kept] = np.frombuffer(pieces[1], dtype=np.uint64)
            yield words.view(kind).reshape(shape)


def _own_checkpoints(history: Any) -> list[Any]:
    """Return the checkpoints of an agent; None for one that it does not have, or shares: before its first step."""
    return [history.base if history.base.time else None, history.middle, history.first_pending]


def _dump_own(history: Any) -> tuple[dict[str, Any], list[Any]]:
    checkpoints = _own_checkpoints(history)
    times = [None if each is None else each.time for each in checkpoints]
    rows = slice(0, history.row(history.end))
    arrays = [history.memory.own[0], *(each.block for each in checkpoints if each is not None)]
    arrays += [getattr(history, name)[rows] for name in STEPS]
    return {"time": history.time, "end": history.end, "checkpoints": times}, arrays


def _restore_own(history: Any, values: Any, arrays: Iterator[Any]) -> None:
    block = history.memory.own[0]
    fill([block], arrays)
    checkpoints: list[Any] = []
    for time in values["checkpoints"]:
        copied = None if time is None else np.empty_like(block)
        if copied is not None:
            fill([copied], arrays)
        checkpoints.append(None if copied is None else Checkpoint(time, copied))
    history.start_at(checkpoints[0] or history.base)
    history.time, history.end, history.middle, history.first_pending = values["time"], values["end"], *checkpoints[1:]
    rows = slice(0, history.row(history.end))
    fill([getattr(history, name)[rows] for name in STEPS], arrays)


def _dump_shared(history: SharedHistory) -> tuple[dict[str, Any], list[Any]]:
    rows = slice(0, history.row(history.end))
    arrays = [history.memory.shared, history.memory.own[: history.units]]
    for each in history.checkpoints:
        arrays += [each.shared, each.own]
    arrays += [getattr(history, name)[rows] for name in LOG_COLUMNS]
    values: dict[str, Any] = {name: getattr(history, name) for name in ("time", "end", "final", "_valid", "_counts")}
    return values | {"checkpoints": [each.time for each in history.checkpoints]}, arrays


def _restore_shared(history: Any, values: Any, arrays: Iterator[Any]) -> None:
    memory = history.memory
    fill([memory.shared, memory.own[: history.units]], arrays)
    history.checkpoints = []
    for time in values["checkpoints"]:
        shared, own = np.empty_like(memory.shared), take(arrays).copy()
        fill([shared], iter([own]))
        own = take(arrays).copy()
        if own.dtype != memory.own.dtype or own.shape[1:] != memory.own.shape[1:]:
            raise ValueError(f"a checkpoint has {own.dtype} of {own.shape}, not rows of {memory.own.shape[1]} words")
        history.checkpoints.append(SharedCheckpoint(time, shared, own))
    for name in ("time", "end", "final", "_valid", "_counts"):
        setattr(history, name, values[name])
    for name in LOG_COLUMNS:
        logged, present = take(arrays), getattr(history, name)
        size = max(len(logged), len(present))
        rows = np.zeros((size, *present.shape[1:]), dtype=present.dtype)
        fill([rows[: history.row(history.end)]], iter([logged]))
        setattr(history, name, rows)
    check_units(history)
    first = history.checkpoints[0].time
    for row in range(history.row(history.end)):
        history._steps[history.unit[row]].append(first + row)
