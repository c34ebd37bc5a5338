"""The update of each policy after a step without a reward, as documented in docs/agent.md."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl.policies import Policy
from larl.policies._lags import dense_context
from larl.policies._linalg.packed_ridge import dense_inverse, dense_theta
from tests.conftest import THREE_ARMS, world_of
from tests.live.test_agent import live_specs, same
from tests.policies.test_live_functions import leaves
from tests.stepping import decide, learn

STEPS = 60


def history(seed: int = 3) -> list[tuple[int, float]]:
    """Return random arms and rewards; a quarter of the rewards is missing."""
    draws = np.random.default_rng(seed)
    rewards = np.where(draws.random(STEPS) < 0.25, math.nan, draws.normal(size=STEPS))
    return list(zip(draws.integers(3, size=STEPS).tolist(), rewards.tolist(), strict=True))


def updated_state(spec: Policy, steps: list[tuple[int, float]]) -> Any:
    state = spec.init(3, horizon=STEPS, world=world_of(spec))
    for arm, reward in steps:
        learn(state, arm, reward)
    return state


TIMELESS = [
    larl.UCB(),
    larl.ThompsonSampling(),
    larl.BetaThompson(),
    larl.KLUCB(),
    larl.CUSUMUCB(3, threshold=2.0),
]


@pytest.mark.parametrize("spec", TIMELESS, ids=str)
def test_policies_without_time_ignore_missing_rewards(spec: Policy) -> None:
    seen = [(arm, reward) for arm, reward in history() if not math.isnan(reward)]
    assert same(updated_state(spec, history()), updated_state(spec, seen))


DISCOUNTED = [
    larl.DiscountedUCB(0.9),
    larl.DiscountedBetaThompson(0.9),
    larl.DiscountedKLUCB(0.9),
]


@pytest.mark.parametrize("spec", DISCOUNTED, ids=str)
def test_discounted_counts_decay_at_missing_rewards(spec: Policy) -> None:
    state, plays, total = spec.init(3), np.zeros(3), np.zeros(3)
    for arm, reward in history():
        learn(state, arm, reward)
        plays, total = plays * 0.9, total * 0.9
        if not math.isnan(reward):
            plays[arm] += 1.0
            total[arm] += reward if isinstance(spec, larl.DiscountedUCB) else min(max(reward, 0.0), 1.0)
    assert state.plays == pytest.approx(plays, rel=1e-12)
    assert state.total == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    "spec", [larl.SlidingWindowUCB(7), larl.SlidingWindowBetaThompson(7, reward_range=(-9.0, 9.0))], ids=str
)
def test_window_slides_at_missing_rewards(spec: Policy) -> None:
    size, steps = 7, history()
    state, (low, high) = spec.init(3), getattr(spec, "reward_range", (0.0, 1.0))
    for t, (arm, reward) in enumerate(steps):
        learn(state, arm, reward)
        latest = [(a, r) for a, r in steps[max(t + 1 - size, 0) : t + 1] if not math.isnan(r)]
        for each in range(3):
            rewards = [(r - low) / (high - low) for a, r in latest if a == each]
            assert state.window.plays[each] == len(rewards)
            assert state.window.total[each] == pytest.approx(sum(rewards), abs=1e-12)


def test_hazard_applies_at_missing_rewards() -> None:
    state = updated_state(larl.ChangePointThompson(hazard=0.1, memory=20), history()[:5])
    before, used = state.weight.copy(), int(state.used[0])
    learn(state, 0, math.nan)
    assert state.weight[:used] == pytest.approx(0.9 * before[:used], rel=1e-12)
    assert state.weight[used] == pytest.approx(0.1)
    assert np.all(state.plays[used] == 0.0)


def test_exp3_batch_counts_missing_rewards() -> None:
    state = larl.Rexp3(20.0, (-5.0, 5.0), horizon=400).init(3)
    for _ in range(state.batch - 1):
        learn(state, 0, 5.0)
    assert state.log_weight.min() < 0.0
    weights = state.log_weight.copy()
    learn(state, 1, math.nan)
    assert state.log_weight.tolist() == [0.0, 0.0, 0.0] != weights.tolist()


def test_ar2_estimates_decay_at_missing_rewards() -> None:
    state = updated_state(larl.AR2(0.8, 1.0, epoch=50), [(0, 1.0), (1, 2.0), (2, 3.0)])
    before = state.estimate.copy()
    learn(state, 1, math.nan)
    assert state.estimate == pytest.approx(0.8 * before)


def test_ar_ucb_imputes_the_prediction() -> None:
    state = updated_state(larl.ARUCB(2), [(t % 3, float(t % 5)) for t in range(30)])
    x = state.context.copy()
    learn(state, 1, math.nan)
    assert state.context.tolist() == [1.0, pytest.approx(float(state.ridge.theta[1] @ x)), x[1]]
    x = state.context.copy()
    learn(state, -1, math.nan)
    assert state.context[1] == pytest.approx(float(np.mean(state.ridge.theta @ x)))


def rows_of(steps: list[tuple[int, float]], s: int) -> list[tuple[int, Any, float]]:
    """Return LARL's rows in the paper's order; a missing lag has neither reward nor indicator."""
    rows = []
    for t in range(s, len(steps)):
        x = np.zeros((2, s, 3))
        for j, (arm, reward) in enumerate(steps[t - s : t]):
            if not math.isnan(reward):
                x[:, j, arm] = reward, 1.0
        if not math.isnan(steps[t][1]):
            rows.append((steps[t][0], np.append(x.ravel(), 1.0), steps[t][1]))
    return rows


def order(s: int) -> Any:
    """Return the permutation from the stored order of θ to the paper's."""
    rewards = [1 + 2 * ((s - 1 - j) * 3 + a) for j in range(s) for a in range(3)]
    return np.array(rewards + [index + 1 for index in rewards] + [0])


def fitted(rows: list[tuple[int, Any, float]], arm: int, size: int) -> Any:
    own = [(x, r) for a, x, r in rows if a == arm]
    v = np.eye(size) + sum((np.outer(x, x) for x, _ in own), np.zeros((size, size)))
    return np.linalg.solve(v, sum((r * x for x, r in own), np.zeros(size))), v


def test_larl_context_omits_missing_rewards() -> None:
    s, steps = 3, history()
    state = updated_state(larl.LARL(s), steps)
    for arm in range(3):
        theta, v = fitted(rows_of(steps, s), arm, 6 * s + 1)
        assert dense_theta(state.ridge, arm)[order(s)] == pytest.approx(theta, abs=1e-10)
        assert dense_inverse(state.ridge, arm)[np.ix_(order(s), order(s))] == pytest.approx(np.linalg.inv(v), abs=1e-10)
    latest = dense_context(state.lags, s, 3).reshape(-1)[3 * s : 6 * s].reshape(s, 3).sum(axis=1)
    assert latest.tolist() == [0.0 if math.isnan(reward) else 1.0 for _, reward in steps[-s:]]


def test_linucb_window_slides_at_missing_rewards() -> None:
    s, window, steps = 2, 15, history()
    state = updated_state(larl.SlidingWindowLinUCB(s, window), steps)
    kept = rows_of(steps[-window - s :], s)
    for arm in range(3):
        theta, _ = fitted(kept, arm, 6 * s + 1)
        assert dense_theta(state.ridge, arm)[order(s)] == pytest.approx(theta, abs=1e-9)


def test_bic_uses_only_rows_with_rewards() -> None:
    steps = history()[:20]
    state = updated_state(larl.LARLBIC(20, s_max=4), steps)
    criteria = []
    for s in range(1, 5):
        rows = rows_of(steps, s)
        rss = sum((r - x @ fitted(rows, arm, 6 * s + 1)[0]) ** 2 for arm, x, r in rows)
        criteria.append(len(rows) * math.log(rss / len(rows)) + (6 * s + 1) * math.log(len(rows)))
    assert state.chosen[0] == 1 + int(np.argmin(criteria))
    theta, _ = fitted(rows_of(steps, int(state.chosen[0])), 0, 6 * int(state.chosen[0]) + 1)
    size = 1 + 6 * int(state.chosen[0])
    assert dense_theta(state.ridge, 0)[:size][order(int(state.chosen[0]))] == pytest.approx(theta, abs=1e-10)


def test_steady_filter_imputes_the_prediction() -> None:
    spec = larl.KalmanOracle(filter="steady")
    state = updated_state(spec, [(0, 2.0), (1, -1.0), (2, 0.5), (0, 1.5)])
    before, gamma = state.z.copy(), THREE_ARMS.system.gamma
    learn(state, 0, math.nan)
    assert state.z == pytest.approx(gamma @ before + THREE_ARMS.system.drift, abs=1e-12)
    assert decide(state, 0) in (0, 1, 2)


@pytest.mark.parametrize("spec", live_specs(), ids=str)
def test_missing_rewards_before_the_first_add_no_nan(spec: Policy) -> None:
    """A State that starts with missing rewards has no more nan than one that does not."""
    first = [(0, math.nan), (1, math.nan)]
    late, plain = updated_state(spec, first + history()), updated_state(spec, history())
    for one, other in zip(leaves(late), leaves(plain), strict=True):
        assert np.isnan(one).sum() <= np.isnan(other).sum()
