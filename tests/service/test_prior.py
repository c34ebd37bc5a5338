"""Studies whose policy has a learnt prior."""

from pathlib import Path

import numpy as np

import larl
from tests.service.study_client import content, service_client

PART = larl.priors.PriorComponent(
    order=1,
    weight=1.0,
    mean=[1.5, 1, 1, 0, 0, 0, -3],
    mean_covariance=np.eye(7) / 100,
    spread=[0.1] * 7,
    level=[0, 0.5],
    same_sign=[0.5, 0.05],
    errors=4.0,
    shock_sd=1.0,
)
PRIOR = larl.Prior(arms=("off", "on"), rewards="continuous", units=9, steps=900, components=(PART,))
POLICY = larl.Auto(prior=PRIOR, orders=(1,), particles=16)


def test_study_with_a_prior_decides(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        study = {"study": "sleep", "arms": ["off", "on"], "policy": POLICY.to_dict(), "seed": 3}
        assert content(client.post("/v1/studies", json=study))["policy"]["prior"] == PRIOR.to_dict()
        decision = content(client.post("/v1/studies/sleep/decisions", json={"unit": "u", "key": "k"}))
        assert decision["arm"] in ("off", "on")
        assert not decision["fallback"]


def test_other_arms_and_paths_are_refused(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        study = {"study": "sleep", "arms": ["on", "off"], "policy": POLICY.to_dict()}
        refused = client.post("/v1/studies", json=study)
        assert (refused.status_code, refused.json()["field"]) == (422, "arms")
        study = {"study": "sleep", "arms": ["off", "on"], "policy": {"policy": "Auto", "prior": "study.db"}}
        refused = client.post("/v1/studies", json=study)  # nobody can make a service read a file
        assert (refused.status_code, refused.json()["field"]) == (422, "prior")
