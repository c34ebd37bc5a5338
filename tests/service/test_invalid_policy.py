"""A policy with NaN, infinite or invalid numbers leads to fallback decisions and an alert, and replays exactly."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from larl.live.files import state_arrays
from larl.policies import Policy
from larl.service.queries import inspector
from larl.service.queries.model_weights import model_weights
from tests.service import failing_policy
from tests.service.host import UCB, hosts
from tests.service.study_client import content, create_study, decide, reward, service_client

FAILURES = {
    "the State has a NaN": failing_policy.NAN_STATE,
    "the State has an infinity": failing_policy.INFINITE_STATE,
    "a probability is NaN": failing_policy.NAN_PROBABILITY,
    "a probability is negative": failing_policy.NEGATIVE_PROBABILITY,
    "the probabilities sum to 2": failing_policy.SUM_OF_TWO,
    "it plays an arm that it gives probability 0": failing_policy.IMPOSSIBLE_ARM,
}
FALLBACK = {"a": 0.25, "b": 0.75}


@pytest.mark.parametrize("how", FAILURES)
def test_fallback_decisions_continue_and_replay_exactly(sqlite: str, how: str) -> None:
    with failing_policy.registered():
        with hosts(sqlite) as [host]:
            host.create_study(policy={"policy": "FailingPolicy", "failure": FAILURES[how]}, fallback=FALLBACK)
            for i in range(2):
                decision = host.decide("u", str(i))
                assert decision["source"] == "policy"
                host.reward(decision["id"], str(i), 1.0)
            for i in range(2, 8):
                decision = host.decide("u", str(i))
                assert (decision["source"], decision["fallback"], decision["t"]) == ("fallback", True, i)
                assert decision["probabilities"] == FALLBACK
                assert (decision["expected"], decision["width"]) == (None, None)
                assert host.reward(decision["id"], str(i), 1.0)["status"] in ("learnt", "stored")
            [issue] = host.issues()
            assert (issue["severity"], issue["code"], issue["unit"]) == ("red", "policy", "u")
            assert issue["happened"].startswith("the policy failed: ")
            [alert] = host.alerts
            assert (alert["code"], alert["study"]) == ("policy", "sleep")
            assert host.decide("other", "other")["source"] == "policy"  # its agent has learnt nothing yet
            assert host.replay() == 9
        with hosts(sqlite) as [host]:  # a restart does not help
            assert host.decide("u", "8")["source"] == "fallback"
            host.change_policy("p", 1, UCB)
            decision = host.decide("u", "9")
            assert (decision["source"], decision["t"]) == ("policy", 9)
            assert all(math.isfinite(each) for each in decision["probabilities"].values())
            assert host.replay() == 11


@pytest.mark.parametrize("how", FAILURES)
def test_fallback_decisions_continue_after_a_restart(sqlite: str, how: str) -> None:
    """The snapshot has the invalid State."""
    with failing_policy.registered():
        with hosts(sqlite) as [host]:
            host.create_study(policy={"policy": "FailingPolicy", "failure": FAILURES[how]}, fallback=FALLBACK)
            for i in range(2):
                host.reward(host.decide("u", str(i))["id"], str(i), 1.0)
        with hosts(sqlite) as [host]:
            decision = host.decide("u", "2")
            assert (decision["source"], decision["probabilities"]) == ("fallback", FALLBACK)
            assert [issue["code"] for issue in host.issues()] == ["policy"]
            assert host.replay() == 3


@pytest.mark.parametrize("how", ["the State has a NaN", "a probability is NaN"])
def test_responses_have_no_nan(tmp_path: Path, how: str) -> None:
    """Decisions, lists, overviews and exports are valid JSON and CSV."""
    with failing_policy.registered(), service_client(tmp_path) as client:
        create_study(
            client, arms=["a", "b"], policy={"policy": "FailingPolicy", "failure": FAILURES[how]}, max_delay=50
        )
        sources = []
        for i in range(5):
            decision = decide(client, str(i), "u")
            sources.append(decision["source"])
            reward(client, str(i), decision["id"], 1.0)
        assert sources == ["policy", "policy", "fallback", "fallback", "fallback"]
        paths = ("decisions", "rewards", "issues", "overview", "roster", "unit-overview?unit=u")
        for path in (f"/v1/studies/sleep/{path}" for path in paths):
            json.dumps(content(client.get(path)), allow_nan=False)
        assert "nan" not in client.get("/v1/studies/sleep/export").text.lower()


def test_weights_that_are_not_finite_are_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nan_weights(policy: Policy, state: Any) -> dict[str, float] | None:
        state_arrays(state)["log_weight"][...] = np.nan
        return model_weights(policy, state)

    with service_client(tmp_path) as client:
        create_study(client, arms=["a", "b"], policy={"policy": "AdaptiveLARL", "s_max": 2}, min_probability=0.0)
        decide(client, "1", "u")
        assert content(client.get("/v1/studies/sleep/unit-overview?unit=u"))["weights"] is not None
        monkeypatch.setattr(inspector, "model_weights", nan_weights)
        assert content(client.get("/v1/studies/sleep/unit-overview?unit=u"))["weights"] is None
