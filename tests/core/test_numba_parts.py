"""Without numba's private API, larl compiles with plain `numba.njit` and gives the same results bit for bit."""

import pydoc
from typing import Any

import pytest

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
