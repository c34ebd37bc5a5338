"""A policy whose numbers stop being numbers: flagged fallbacks and an alert, for as long as it lasts; replays agree."""

import json
import math
from typing import Any

import numpy as np
import pytest

from larl.live.files import state_arrays
from larl.policies import Policy
from larl.service.queries import inspector
from larl.service.queries.model_weights import model_weights
from tests.service import awkward
from tests.service.host import UCB, hosts
from tests.service.studying import client, decide, done, make_study, reward

HOW = {
    "the State has a NaN": awkward.IS_NO_NUMBER,
    "the State has an infinity": awkward.IS_INFINITE,
    "a probability is NaN": awkward.NAN_ODDS,
    "a probability is negative": awkward.NEGATIVE_ODDS,
    "the probabilities sum to 2": awkward.ODDS_OF_TWO,
    "it plays an arm that it gives probability 0": awkward.OTHER_ARM,
}
CHANCES = {"a": 0.25, "b": 0.75}


@pytest.mark.parametrize("how", HOW)
def test_fallbacks_go_on_and_replays_agree(sqlite: str, how: str) -> None:
    with awkward.known():
        with hosts(sqlite) as [host]:
            host.make(policy={"policy": "Awkward", "wrong": HOW[how]}, fallback=CHANCES)
            for i in range(2):
                made = host.decide("u", str(i))
                assert made["source"] == "policy"
                host.reward(made["id"], str(i), 1.0)
            for i in range(2, 8):
                made = host.decide("u", str(i))
                assert (made["source"], made["fallback"], made["t"]) == ("fallback", True, i)
                assert made["probabilities"] == CHANCES
                assert (made["expected"], made["width"]) == (None, None)
                assert host.reward(made["id"], str(i), 1.0)["status"] in ("learnt", "stored")
            [issue] = host.issues()
            assert (issue["severity"], issue["code"], issue["unit"]) == ("red", "policy", "u")
            assert issue["happened"].startswith("the policy failed: ")
            [alert] = host.alerts
            assert (alert["code"], alert["study"]) == ("policy", "sleep")
            assert host.decide("other", "other")["source"] == "policy"  # it has learnt nothing yet
            assert host.check() == 9
        with hosts(sqlite) as [host]:  # started again, it is no better
            assert host.decide("u", "8")["source"] == "fallback"
            host.change("p", 1, UCB)
            made = host.decide("u", "9")
            assert (made["source"], made["t"]) == ("policy", 9)
            assert all(math.isfinite(chance) for chance in made["probabilities"].values())
            assert host.check() == 11


@pytest.mark.parametrize("how", HOW)
def test_a_service_that_stops_and_starts_with_such_a_policy_falls_back(sqlite: str, how: str) -> None:
    """A snapshot of it is kept at the end, and read at the next start."""
    with awkward.known():
        with hosts(sqlite) as [host]:
            host.make(policy={"policy": "Awkward", "wrong": HOW[how]}, fallback=CHANCES)
            for i in range(2):
                host.reward(host.decide("u", str(i))["id"], str(i), 1.0)
        with hosts(sqlite) as [host]:
            made = host.decide("u", "2")
            assert (made["source"], made["probabilities"]) == ("fallback", CHANCES)
            assert [issue["code"] for issue in host.issues()] == ["policy"]
            assert host.check() == 3


@pytest.mark.parametrize("how", ["the State has a NaN", "a probability is NaN"])
def test_over_http_answers_stay_json(tmp_path, how: str) -> None:  # type: ignore[no-untyped-def]
    """No NaN leaves the service: decisions, lists, the page's overviews and exports can all be read."""
    with awkward.known(), client(tmp_path, timeout=60.0) as admin:
        make_study(admin, arms=["a", "b"], policy={"policy": "Awkward", "wrong": HOW[how]}, max_delay=50)
        sources = []
        for i in range(5):
            made = decide(admin, str(i), "u")
            sources.append(made["source"])
            reward(admin, str(i), made["id"], 1.0)
        assert sources == ["policy", "policy", "fallback", "fallback", "fallback"]
        paths = ("decisions", "rewards", "issues", "overview", "roster", "units/u/overview")
        for path in (f"/v1/studies/sleep/{path}" for path in paths):
            json.dumps(done(admin.get(path)), allow_nan=False)
        assert "nan" not in admin.get("/v1/studies/sleep/export").text.lower()


def test_weights_that_are_not_finite_are_not_shown(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def spoilt(policy: Policy, state: Any) -> dict[str, float] | None:
        state_arrays(state)["log_weight"][...] = np.nan
        return model_weights(policy, state)

    with client(tmp_path, timeout=60.0) as admin:
        make_study(admin, arms=["a", "b"], policy={"policy": "AdaptiveLARL", "s_max": 2}, min_probability=0.0)
        decide(admin, "1", "u")
        assert done(admin.get("/v1/studies/sleep/units/u/overview"))["weights"] is not None
        monkeypatch.setattr(inspector, "model_weights", spoilt)
        assert done(admin.get("/v1/studies/sleep/units/u/overview"))["weights"] is None
