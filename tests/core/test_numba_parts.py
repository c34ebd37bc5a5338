"""Without numba's private API, larl compiles with plain `numba.njit` and gives the same results bit for bit."""

import pydoc
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.runtime import rtsys
from numba.core.runtime._nrt_python import memsys_enable_stats

from larl._core.compile import entry_point, inner
from larl._core.numba_parts import ATTRIBUTES, PLAIN_NUMBA, missing_attributes
from tests.core.test_compile import run_python

# Prints whether the pipeline is used, and a digest of a comparison and of an agent's decisions.
DIGEST = """
import hashlib, larl
from larl._core.compile import INNER
result = larl.compare({"LARL": larl.LARL(s=1)}, larl.worlds.paper(1), horizon=50, trials=4, seed=3, progress=False)
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
    uses_pipeline, digest = run_python(DIGEST).split()
    assert uses_pipeline == "True"
    assert run_python(DIGEST, **{PLAIN_NUMBA: "1"}).split() == ["False", digest]
    warning, last = run_python(LACKING + DIGEST).splitlines()
    assert warning.startswith(
        "this numba lacks finalize_object in numba.core.codegen.JITCodeLibrary._finalize_specific"
    )
    assert last.split() == ["False", digest]


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


@entry_point
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
