"""Checks of a snapshot's times, steps and States, before compiled functions use them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from larl._core.validation import LARGEST
from larl.live.log_checks import LogSizes, check_integers, check_time
from larl.policies._bounds import check_state


def check_own_times(values: Any, max_delay: int) -> None:
    """Raise ValueError unless the times of an agent's history can belong together."""
    end = check_time("end", values["end"])
    time = check_time("time", values["time"], max(end - 1, 0), end)
    base, middle, first_pending = values["checkpoints"]
    base = 0 if base is None else check_time("base", base, max(end - 2 * max_delay, 0), time)
    if middle is not None:
        check_time("middle", middle, base + max_delay, min(base + max_delay, time))
    if first_pending is not None:
        check_time("first_pending", first_pending, base, time)
    if end - base > 2 * max_delay:
        raise ValueError(f"there are {end - base} steps, more than {2 * max_delay}")


def check_shared_times(values: Any, units: int) -> None:
    """Raise ValueError unless the times of a cohort's history can belong together."""
    end = check_time("end", values["end"])
    time = check_time("time", values["time"], 0, end)
    check_integers("checkpoints", values["checkpoints"], 0, time)
    first = values["checkpoints"][0]
    if any(before >= after for before, after in pairwise(values["checkpoints"])):
        raise ValueError("the checkpoints are not in order")
    check_time("final", values["final"], first, end)
    check_time("valid", values["_valid"], first, time)
    check_integers("counts", values["_counts"], 0, end)
    if len(values["_counts"]) != units or sum(values["_counts"]) != end:
        raise ValueError(f"the decisions of {units} units are not {end} together")


def check_steps(history: Any, sizes: LogSizes) -> None:
    """Raise ValueError unless every logged step is one that an agent can make."""
    rows = slice(0, history.row(history.end))
    arm, reward, pending = history.arm[rows], history.reward[rows], history.pending[rows]
    has_reward, context = ~np.isnan(reward), history.context[rows]
    if np.any((arm < -1) | (arm >= sizes.arms)):
        raise ValueError(f"an arm is not between -1 and {sizes.arms - 1}")
    if np.any(np.abs(reward[has_reward]) > LARGEST) or not np.all(np.abs(context) <= LARGEST):
        raise ValueError(f"a reward or a context is not a number up to {LARGEST:g} in size")
    if np.any((pending | (arm < 0)) & (has_reward | (pending & (arm < 0)))):
        raise ValueError("a step has no arm or waits for its reward, and has one")


def check_units(history: Any) -> None:
    """Raise ValueError unless every logged step belongs to a unit that has made so many decisions."""
    unit = history.unit[: history.row(history.end)]
    if np.any((unit < 0) | (unit >= history.units)):
        raise ValueError(f"a step belongs to none of {history.units} units")
    if np.any(np.bincount(unit, minlength=history.units) > np.array(history._counts, dtype=np.int64)):
        raise ValueError("a unit has more steps than decisions")


def check_shared_states(history: Any, initial: Any) -> None:
    """Raise ValueError unless the States of all units, now and at every checkpoint, are ones that a policy can have.

    `initial` is the State of a new unit.
    """
    check_state(initial, history.memory.stacked())
    for checkpoint in history.checkpoints:
        if len(checkpoint.own) > history.units:
            raise ValueError(f"a checkpoint has {len(checkpoint.own)} units, the cohort {history.units}")
        check_state(initial, history.memory_at(checkpoint).stacked())


def take(arrays: Iterator[Any]) -> Any:
    """Return the next array; ValueError if there is none."""
    if (array := next(arrays, None)) is None:
        raise ValueError("a snapshot has fewer arrays than its agent")
    return array


def fill(targets: Any, arrays: Iterator[Any]) -> None:
    """Write arrays of the same types and shapes into arrays that exist."""
    for target in targets:
        source = take(arrays)
        if source.dtype != target.dtype or source.shape != target.shape:
            raise ValueError(f"an array is {source.dtype} of {source.shape}, not {target.dtype} of {target.shape}")
        target[...] = source
