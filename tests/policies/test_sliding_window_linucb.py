"""Sliding-window LinUCB against a ridge regression that is solved directly on the rows of the window."""

import numpy as np
import pytest

import larl
from larl.policies._linalg.packed_ridge import dense_inverse, dense_theta
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

ARMS = 3


def context(history, s):
    """Return a constant, then for each lag (latest first) and arm a reward and an indicator, 0 for arms not played."""
    x = np.zeros((s, ARMS, 2))
    for lag in range(s):
        arm, reward = history[-1 - lag]
        x[lag, arm] = reward, 1.0
    return np.append(1.0, x.ravel())


def fit(rows, d, ridge):
    """Return θ and V⁻¹ of each arm, from its rows."""
    result = []
    for arm in range(ARMS):
        x = np.array([x for other, x, _ in rows if other == arm]).reshape(-1, d)
        y = np.array([reward for other, _, reward in rows if other == arm])
        gram = x.T @ x + ridge * np.eye(d)
        result.append((np.linalg.solve(gram, x.T @ y), np.linalg.inv(gram)))
    return result


@pytest.mark.parametrize(("s", "window"), [(0, 1), (0, 6), (1, 2), (2, 15), (3, 40)])
@pytest.mark.parametrize(("alpha", "ridge"), [(1.0, 1.0), (0.4, 0.2)])
def test_fit_equals_ridge_regression_of_the_window(s, window, alpha, ridge):
    rng, d = np.random.default_rng(window), 2 * s * ARMS + 1
    state = larl.SlidingWindowLinUCB(s, window, alpha, ridge).init(ARMS)
    history, rows, simulator = [], [], Simulator(THREE_ARMS, seed=3, trial=window)
    for _ in range(s + 5 * window + 7):
        arm = int(rng.integers(ARMS))
        if len(history) >= s:
            x = context(history, s)
            model = fit(rows[-window:], d, ridge)
            thetas = [dense_theta(state.ridge, each) for each in range(ARMS)]
            assert np.allclose(thetas, [theta for theta, _ in model], rtol=1e-8, atol=1e-9)
            inverses = [dense_inverse(state.ridge, each) for each in range(ARMS)]
            assert np.allclose(inverses, [inverse for _, inverse in model], rtol=1e-8, atol=1e-9)
            bounds = [x @ theta + alpha * np.sqrt(x @ inverse @ x) for theta, inverse in model]
            best = decide(state, 0)
            assert bounds[best] > max(bounds) - 1e-9  # arms with no row in the window tie
            arm = best if rng.random() < 0.5 else arm
            rows.append((arm, x, simulator.reward(arm)))
        history.append((arm, simulator.reward(arm)))
        learn(state, *history[-1])
        simulator.advance()


@pytest.mark.parametrize("s", [0, 1, 4])
def test_window_as_long_as_horizon_is_larl(s):
    horizon = 200
    specs = larl.SlidingWindowLinUCB(s, window=horizon - s, alpha=0.7), larl.LARL(s, alpha=0.7)
    for trial in range(5):
        states, simulator, rng = (
            [spec.init(ARMS) for spec in specs],
            Simulator(THREE_ARMS, 5, trial),
            np.random.default_rng(0),
        )
        for _ in range(horizon):
            seed = int(rng.integers(2**63))
            windowed, plain = (decide(state, seed) for state in states)
            assert windowed == plain
            for state in states:
                learn(state, plain, simulator.reward(plain))
            simulator.advance()


def test_short_window_differs_from_larl():
    specs = {"window": larl.SlidingWindowLinUCB(1, window=20), "all": larl.LARL(1)}
    result = larl.compare(specs, THREE_ARMS, horizon=120, trials=4, progress=False)
    same = (result.arm.sel(policy="window") == result.arm.sel(policy="all")).values
    assert same[:, :21].all()  # 20 rows, the first at step 1: until step 21 no row has left the window
    assert not same.all()


def test_first_steps_are_random():
    state, size = larl.SlidingWindowLinUCB(2, window=5).init(ARMS), 6000
    seeds = np.random.default_rng(0).integers(0, 2**64, size, dtype=np.uint64)
    for _ in range(2):
        shares = np.bincount([decide(state, seed) for seed in seeds], minlength=ARMS) / size
        assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / size)  # 4 standard errors
        learn(state, 1, 5.0)
    assert len({decide(state, seed) for seed in seeds}) == 1


@pytest.mark.parametrize(("scale", "ridge"), [(1e4, 1.0), (1e5, 1.0), (10.0, 1e-6)])
@pytest.mark.parametrize("window", [15, 50])
def test_removing_isolated_rows_keeps_precision(scale, ridge, window):
    # Removing a row divides by 1 − leverage, which is near 0 if no other row of the window is similar.
    state, rng, rows = larl.SlidingWindowLinUCB(2, window=window, ridge=ridge).init(2), np.random.default_rng(0), []
    for t in range(10 * window):
        arm, reward = decide(state, int(rng.integers(2**63))), float(scale * (1 + rng.normal()))
        if t >= 2:
            x = np.zeros(9)
            x[0] = 1.0
            for j in range(2):
                entry = 2 * state.lags.indices[j + 1] - 1
                x[entry : entry + 2] = state.lags.value[4 * j + 4], 1.0
            rows.append((arm, x, reward))
        learn(state, arm, reward)
        if t % 7 == 0 and rows:
            for other in range(2):
                own = [(x, y) for a, x, y in rows[-window:] if a == other]
                a = np.array([*(x for x, _ in own), *(np.sqrt(ridge) * np.eye(9))])
                theta = np.linalg.lstsq(a, np.array([y for _, y in own] + [0.0] * 9), rcond=None)[0]
                assert np.abs(a @ (dense_theta(state.ridge, other) - theta)).max() < 1e-3 * scale
