"""Arms that become available late."""

import numpy as np
import pytest

import larl
from larl.policies import Policy


@pytest.mark.parametrize(
    "spec",
    [larl.SharedLARL(2), larl.SharedLARL(2, context=1), larl.AdaptiveLARL(2), larl.Auto(orders=(1,), particles=16)],
    ids=str,
)
@pytest.mark.parametrize("seed", range(4))
def test_decisions_stay_finite_when_an_arm_is_first_played_late(spec: Policy, seed: int) -> None:
    draws, z = np.random.default_rng(seed), 0.0
    agent = larl.Agent(spec, ["a", "b", "c"], min_probability=0.2, seed=seed)
    for t in range(60):
        z = 0.9 * z + draws.normal()
        context = draws.normal(size=1).tolist() if getattr(spec, "context", 0) else None
        decision = agent.decide(available=["a", "b"] if t < 40 else None, context=context)  # refuses nan
        agent.observe(decision, float({"a": z, "b": -z, "c": z}[decision.arm or "a"] + 0.05 * draws.normal()))
