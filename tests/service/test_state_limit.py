"""A policy whose State is too large is refused before the State is created."""

import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.validation import InvalidValue
from larl.live.files import state_arrays
from larl.service.core import state_limit
from larl.service.core.problems import Problem
from larl.service.core.state_limit import MAX_STATE, check_state_size
from tests.conftest import SPECS
from tests.service.host import LARL, hosts
from tests.service.study_client import create_study, service_client

TOO_LARGE = [
    (larl.LARL(2000), 2, "none", "s"),
    (larl.LARL(2, context=10**6), 2, "none", "context"),
    (larl.LARL(5), 60, "none", "arms"),
    (larl.LARL(200), 2, "partial", "s"),
    (larl.ARUCB(10**5), 2, "none", "order"),
    (larl.AdaptiveLARL(s_max=5000), 2, "none", "s_max"),
    (larl.AdaptiveLARL(), 500, "none", "arms"),
    (larl.LARLBIC(902, s_max=900), 2, "none", "s_max"),
    (larl.SharedLARL(window=10**8), 2, "none", "window"),
    (larl.SharedLARL(context=10**5), 2, "none", "context"),
    (larl.AdaptiveLARL(context=10**5), 2, "none", "context"),
    (larl.SlidingWindowLinUCB(3, window=10**12), 2, "none", "window"),
    (larl.ChangePointThompson(memory=10**7), 3, "none", "memory"),
    (larl.Auto(particles=10**6), 2, "none", "particles"),
    (larl.Auto(), 200, "none", "arms"),
]


def _state_bytes(policy: Any, arms: int, pooling: str = "none") -> int:
    cohort = larl.Cohort(policy, arms, pooling=pooling)
    return sum(array.nbytes for array in state_arrays(cohort._new_unit).values())


@pytest.mark.parametrize(("policy", "arms", "pooling", "number"), TOO_LARGE, ids=str)
def test_state_that_is_too_large_is_refused_and_not_created(policy: Any, arms: int, pooling: str, number: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidValue) as caught:
            check_state_size(policy.to_dict(), arms, None, pooling)
        assert tracemalloc.get_traced_memory()[1] < 6 * MAX_STATE
    finally:
        tracemalloc.stop()
    limit, fitting = re.findall(rf"at most (.*), such as {number} ≤ (\d+); ", caught.value.accepted)[0]
    assert limit == "10 MB"
    small = larl.policies.from_dict(policy.to_dict() | ({} if number == "arms" else {number: int(fitting)}))
    size = _state_bytes(small, int(fitting) if number == "arms" else arms, pooling)
    assert MAX_STATE / 2 < size <= MAX_STATE


def test_estimate_is_near_the_size() -> None:
    for policy, arms, pooling, _ in TOO_LARGE[2:4]:
        with pytest.raises(InvalidValue, match="about") as caught:
            check_state_size(policy.to_dict(), arms, None, pooling)
        estimate = float(re.findall(r"about (\S+) MB", caught.value.accepted)[0])
        assert estimate == pytest.approx(_state_bytes(policy, arms, pooling) / 1e6, rel=0.1)


def prior_of(arms: int) -> larl.Prior:
    size = arms + 5
    part = larl.priors.PriorComponent(
        order=1,
        weight=1.0,
        mean=[0.0] * size,
        mean_covariance=np.zeros((size, size)).tolist(),
        spread=[0.5] * size,
        level=[0.0] * arms,
        same_sign=[0.5] * arms,
        errors=0.0,
        shock_sd=0.0,
    )
    names = [str(arm) for arm in range(arms)]
    return larl.Prior(arms=names, rewards="continuous", units=1, steps=2, components=[part])


def test_number_of_arms_of_a_prior_is_not_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, measure = [], state_limit.limited_size

    def size(*given: Any) -> int | None:
        sizes.append(measure(*given))
        return sizes[-1]

    monkeypatch.setattr(state_limit, "limited_size", size)
    state_limit._measure.cache_clear()
    policy = larl.Auto(prior=prior_of(20), orders=range(1, 61), particles=160)
    with pytest.raises(InvalidValue, match=r"such as (orders|particles|memory)") as caught:
        check_state_size(policy.to_dict(), 20, None, "none")
    assert "arms ≤" not in caught.value.accepted
    assert max(each or 0 for each in sizes) < 10 * state_limit.MAX_STATE  # no large State is created
    check_state_size(larl.Auto(prior=prior_of(6)).to_dict(), 6, None, "none")


def test_usual_policies_are_accepted() -> None:
    for policy in [*SPECS, larl.Auto(), larl.LARL(60), larl.LARLBIC(200)]:
        check_state_size(policy.to_dict(), 3, 100, "none")
    check_state_size(larl.UCB().to_dict(), 1000, None, "none")


def test_refusal_over_http(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        for s, message in ((2000, "takes about 508 MB"), (10**300, "a whole number up to")):
            body = {"study": "large", "arms": ["a", "b"], "policy": {"policy": "LARL", "s": s}}
            response = client.post("/v1/studies", json=body)
            assert response.status_code == 422
            assert message in response.json()["detail"]
        create_study(client, arms=["a", "b"])
        change = {"key": "1", "replaces": 1, "policy": {"policy": "LARL", "s": 2000}, "reason": ""}
        assert client.post("/v1/studies/sleep/policy", json=change).status_code == 422


def test_study_from_before_the_limit_goes_on(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL)
        host.decide("u", "1")
    monkeypatch.setattr(state_limit, "MAX_STATE", 100)
    state_limit._measure.cache_clear()
    with hosts(sqlite) as [host]:
        decision = host.decide("u", "2")
        assert (decision["t"], decision["source"]) == (1, "policy")
        with pytest.raises(Problem, match="State takes at most"):
            host.change_policy("p", 1, LARL | {"alpha": 0.5})
        with pytest.raises(Problem, match="State takes at most"):
            host.create_study("new", policy=LARL)
        assert host.replay() == 2
    state_limit._measure.cache_clear()
