"""AR-UCB against a ridge regression that is solved directly at every step, with both confidence radii."""

import math

import numpy as np
import pytest

import larl
from tests.stepping import decide, learn

ARMS = 3


def model(rewards, arms, order, ridge):
    """Return V and θ of each arm from its rows (1, r_{t−1} … r_{t−order}) → r_t, t ≥ order, and the next context."""
    contexts = [np.array([1.0, *(rewards[t - j] for j in range(1, order + 1))]) for t in range(order, len(rewards) + 1)]
    result = []
    for arm in range(ARMS):
        mine = [t for t in range(order, len(rewards)) if arms[t] == arm]
        x = np.array([contexts[t - order] for t in mine]).reshape(-1, order + 1)
        gram = ridge * np.eye(order + 1) + x.T @ x
        result.append((gram, np.linalg.solve(gram, x.T @ np.array([rewards[t] for t in mine]))))
    return result, contexts[-1]


@pytest.mark.parametrize("radius", ["alpha", "theory"])
@pytest.mark.parametrize(("order", "ridge"), [(0, 1.0), (1, 0.5), (2, 1.0), (5, 2.0)])
def test_choices_equal_direct_solve(order, ridge, radius):
    rng = np.random.default_rng(order)
    spec = larl.ARUCB(order, alpha=0.6, ridge=ridge, radius=radius, bound=1.3, sigma=0.4, delta=0.02)
    chosen = set()
    for _ in range(20):
        state, arms, rewards = spec.init(ARMS), [], []
        for t in range(1, 40):
            arm = int(rng.integers(ARMS))
            if t > order:
                arms_model, x = model(rewards, arms, order, ridge)
                bounds = []
                for gram, theta in arms_model:
                    width = math.sqrt(x @ np.linalg.solve(gram, x))
                    log_det = np.linalg.slogdet(gram)[1] - (order + 1) * math.log(ridge)
                    theory = math.sqrt(ridge * (1.3**2 + 1)) + 0.4 * math.sqrt(2 * math.log(ARMS / 0.02) + log_det)
                    bounds.append(x @ theta + (theory if radius == "theory" else 0.6) * width)
                best = decide(state, 0)
                assert bounds[best] > max(bounds) - 1e-9
                chosen.add(best)
                assert np.allclose(state.ridge.theta, [theta for _, theta in arms_model], rtol=1e-8, atol=1e-10)
                assert np.allclose(state.log_det, [np.linalg.slogdet(g / ridge)[1] for g, _ in arms_model], atol=1e-9)
                arm = best if rng.random() < 0.5 else arm
            past = rewards[-1] if rewards else 0.0
            arms.append(arm)
            rewards.append(0.3 + (0.2, 0.5, -0.4)[arm] * past + rng.normal(scale=0.5))
            learn(state, arms[-1], rewards[-1])
    assert chosen == {0, 1, 2}


def test_theory_radius_decides_choices_as_in_the_paper():
    # Order 0, arm 0 never played, arm 1 played n times with mean m: V₁ = 1 + n, and arm 0 is played if
    # √2 + √(2 log 2/δ) > m n/(1 + n) + (√2 + √(2 log 2/δ + log(1 + n)))/√(1 + n). Without a delta, δ = 1/(2T).
    n, horizon = 50, 200
    confidence = 2 * math.log(2 * 2 * horizon)
    other = (math.sqrt(2) + math.sqrt(confidence + math.log(n + 1))) / math.sqrt(n + 1)
    level = (math.sqrt(2) + math.sqrt(confidence) - other) * (n + 1) / n
    for factor, expected in [(1 - 1e-9, 0), (1 + 1e-9, 1)]:
        state = larl.ARUCB(0, radius="theory").init(2, horizon=horizon)
        for _ in range(n):
            learn(state, 1, factor * level)
        assert decide(state, 0) == expected
    with pytest.raises(larl.InvalidValue, match="ARUCB: delta = None"):
        larl.ARUCB(0, radius="theory").init(2)


def test_first_steps_are_random_and_not_used():
    state, size = larl.ARUCB(2).init(ARMS), 6000
    seeds = np.random.default_rng(0).integers(0, 2**64, size, dtype=np.uint64)
    for reward in (7.0, -4.0):
        shares = np.bincount([decide(state, seed) for seed in seeds], minlength=ARMS) / size
        assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / size)  # 4 standard errors
        learn(state, 1, reward)
        assert not state.ridge.theta.any()
        assert np.array_equal(state.ridge.inverse, [np.eye(3)] * 3)
    assert np.array_equal(state.context, [1.0, -4.0, 7.0])
    assert len({decide(state, seed) for seed in seeds}) == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_order_zero_is_ucb(alpha):
    states, rng = (
        [spec.init(ARMS) for spec in (larl.ARUCB(0, alpha, 0.5), larl.UCB(alpha, 0.5))],
        np.random.default_rng(1),
    )
    for _ in range(300):
        arm, same = (decide(state, 0) for state in states)
        assert arm == same
        reward = rng.normal(0.1 * arm)
        for state in states:
            learn(state, arm, reward)
