"""Without numba's private API, larl compiles with plain `numba.njit` and gives the same results bit for bit."""

import io
import pydoc
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.runtime import rtsys
from numba.core.runtime._nrt_python import memsys_enable_stats

from larl._core.compile import inner, kernel
from larl._core.numba_parts import (
    ATTRIBUTES,
    CACHE_ATTRIBUTES,
    CACHE_INSTANCE_ATTRIBUTES,
    PLAIN_NUMBA,
    can_cache,
    missing_attributes,
)
from tests.core.test_compile import run_python

# Prints whether the pipeline is used, and a digest of a comparison and of an agent's decisions.
DIGEST = """
import hashlib, larl
from larl._core.compile import INNER
result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=4, seed=3, progress=False)
agent, decisions = larl.Agent(larl.UCB(), 2, seed=1, min_probability=0.1), []
for t in range(20):
    decisions.append(agent.decide())
    agent.observe(decisions[-1], 0.1 * t)
parts = [result.data[name].values.tobytes() for name in ("arm", "reward", "regret")]
print("pipeline_class" in INNER, hashlib.sha256(b"".join(parts) + repr(decisions).encode()).hexdigest())
"""
# A numba that works and lacks one name: the wrapper of the method does not mention `finalize_object`.
LACKING = """
import warnings
from numba.core.codegen import JITCodeLibrary
original = JITCodeLibrary._finalize_specific
JITCodeLibrary._finalize_specific = lambda self: original(self)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import larl._core.numba_parts
print(*(each.message for each in caught), sep=chr(10))
print(larl._core.numba_parts.PIPELINE, larl._core.numba_parts.ENTRY)
"""


def test_installed_numba_has_every_attribute() -> None:
    assert missing_attributes() == []


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_missing_attribute_is_detected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = path.rpartition(".")
    target: Any = pydoc.locate(owner)
    for each in getattr(target, "__mro__", (target,)):
        if name in vars(each):
            monkeypatch.delattr(each, name)
    assert path in missing_attributes()


def test_plain_numba_gives_same_results() -> None:
    with redirect_stdout(io.StringIO()) as printed:
        exec(DIGEST, {})
    uses_pipeline, digest = printed.getvalue().split()
    assert uses_pipeline == "True"
    assert run_python(DIGEST, **{PLAIN_NUMBA: "1"}).split() == ["False", digest]
    warning, last = run_python(LACKING).splitlines()
    assert warning.startswith(
        "this numba lacks finalize_object in numba.core.codegen.JITCodeLibrary._finalize_specific"
    )
    assert last == "{} {}"


def add_one(x: float) -> float:
    return x + 1


def test_processes_that_cache_a_kernel_at_once_do_not_share_a_file() -> None:
    """Another process saves the kernel for other arguments between the two writes of this one: index and code."""
    here, there = kernel(add_one), kernel(add_one)
    files: list[Any] = [each._cache._cache((numba.int64,))._cache_file for each in (here, there)]
    files[0].flush()
    old_index = files[0]._load_index()
    save_data = files[0]._save_data

    def save_data_later(*arguments: Any) -> None:
        files[1]._load_index = lambda: dict(old_index)  # read before the index of `here` was written
        assert there(1.5) == 2.5
        save_data(*arguments)

    files[0]._save_data = save_data_later
    assert here(1) == 2
    later = kernel(add_one)
    assert later(1.5) == 2.5
    assert later(1) == 2
    assert sum(later.stats.cache_hits.values()) == 1  # the entry of `here` is lost, that of `there` is used


def test_without_unique_names_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_cache()
    assert missing_attributes(CACHE_ATTRIBUTES, CACHE_INSTANCE_ATTRIBUTES) == []
    target: Any = pydoc.locate("numba.core.caching.IndexDataCacheFile")
    monkeypatch.delattr(target, "_data_name")
    with pytest.warns(RuntimeWarning, match=r"lacks .*_data_name.* in every process"):
        assert not can_cache()


class Pair(NamedTuple):
    left: Any
    right: Any


@inner
def add_to_row(pair: Pair, row: int, value: float) -> float:
    """Change a view of an argument."""
    view = pair.left[row]
    view[0] += value
    return view[0] + pair.right[row]


@inner
def swapped(pair: Pair) -> Pair:
    """Return a new array and one of the argument."""
    return Pair(pair.right.copy(), pair.right)


@inner
def shift_rows(pair: Pair) -> None:
    """Assign overlapping rows: numba copies the source first."""
    pair.left[1:] = pair.left[:-1]
    pair.left[0] = pair.right[:2]


@inner
def masked_sum(pair: Pair, mask: Any) -> float:
    """Index by a tuple that contains an array: numba makes a copy."""
    return pair.left[mask, 0].sum()


@kernel
def call_copying_callees(pair: Pair, mask: Any) -> float:
    shift_rows(pair)
    return masked_sum(pair, mask)


def test_callees_can_assign_slices_and_index_by_arrays() -> None:
    pair, _ = Pair(np.arange(6.0).reshape(3, 2), np.array([7.0, 8.0, 9.0])), memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    assert call_copying_callees(pair, np.array([True, False, True])) == 7.0 + 2.0
    after = rtsys.get_allocation_stats()
    assert pair.left.tolist() == [[7.0, 8.0], [0.0, 1.0], [2.0, 3.0]]
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


@numba.njit  # not kept: its callees are compiled in every run, and their code is inspected
def call_callees(pair: Pair, row: int) -> float:
    total = add_to_row(pair, 0, 1.0) + add_to_row(pair, 1, 2.0) + add_to_row(pair, row, 4.0)
    for _ in range(3):
        new = swapped(pair)
        total += new.left[row] + new.right[row]
    return total


def test_callees_are_compiled_once_and_count_only_references_that_they_own() -> None:
    pair, _ = Pair(np.zeros((3, 2)), np.arange(3.0)), memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    assert call_callees(pair, 2) == 1.0 + 3.0 + 6.0 + 3 * 4.0
    after = rtsys.get_allocation_stats()
    assert pair.left[:, 0].tolist() == [1.0, 2.0, 4.0]
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert after.alloc - before.alloc == after.free - before.free
    (code,) = add_to_row.inspect_llvm().values()  # one for the literals 0 and 1, and any other row
    assert "NRT_incref" not in code
    (code,) = swapped.inspect_llvm().values()
    assert "NRT_incref" in code
