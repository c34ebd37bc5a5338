"""Agents and cohorts refuse a policy whose State exceeds the memory, before the State is allocated."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import larl
from larl._core.validation import InvalidValue
from larl.live import base
from larl.policies import Policy
from larl.policies import _state_memory as state_memory

TOO_LARGE = [
    (larl.LARL(s=10**9), "s"),
    (larl.LARL(s=10**5), "s"),
    (larl.AdaptiveLARL(10**9), "s_max"),
    (larl.SharedLARL(10**9), "s"),
    (larl.SlidingWindowUCB(10**12), "window"),
    (larl.ChangePointThompson(memory=10**12), "memory"),
]
LIVE: dict[str, Callable[[Policy], Any]] = {
    "agent": lambda policy: larl.Agent(policy, 2),
    "agent with a world": lambda policy: larl.Agent(policy, 2, world=larl.worlds.paper(1)),
    "cohort": lambda policy: larl.Cohort(policy, 2),
    "partial pooling": lambda policy: larl.Cohort(policy, 2, pooling="partial"),
}


@pytest.mark.parametrize("kind", LIVE)
@pytest.mark.parametrize(("policy", "field"), TOO_LARGE, ids=lambda value: str(value).split(",")[0])
def test_state_that_exceeds_memory_is_refused_and_not_created(policy: Policy, field: str, kind: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidValue, match=rf"{type(policy).__name__}: {field} = 1000+ .* needs about .* [TPE]B"):
            LIVE[kind](policy)
        assert tracemalloc.get_traced_memory()[1] < 2 * state_memory.LARGE_STATE
    finally:
        tracemalloc.stop()


def test_state_for_which_there_is_no_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError("Unable to allocate 3 GiB")

    monkeypatch.setattr(larl.LARL, "init", full)
    with pytest.raises(InvalidValue, match=r"LARL: s = 7 is not usable; .* needs more memory than there is"):
        larl.Agent(larl.LARL(7), 2)


def test_large_state_that_fits_is_accepted() -> None:
    assert larl.Agent(larl.SlidingWindowUCB(100_000), 2).decide().t == 0


@pytest.mark.parametrize("kind", [larl.UCB, larl.LARL, larl.AdaptiveLARL, larl.SharedLARL])
def test_agents_with_usual_settings_create_one_state(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    created, init = [], kind.init

    def counted(self: Policy, *given: Any, **more: Any) -> Any:
        created.append(self)
        return init(self, *given, **more)

    monkeypatch.setattr(kind, "init", counted)
    base._shared_memory.cache_clear()
    for _ in range(3):
        larl.Agent(kind(s=5) if kind is larl.LARL else kind(), 2)
    assert len(created) == 1
