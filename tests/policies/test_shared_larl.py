"""SharedLARL against a direct log posterior, scipy's optimiser and Lemma 2; other units; extreme rewards."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

import larl
from larl import theory, worlds
from larl._core.compile import kernel
from larl._core.states import copy_state
from larl.policies.shared_larl import model as _shared
from larl.policies.shared_larl import prior as _prior
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

gradient_and_curvature = kernel(
    lambda state, k: _shared.gradient_and_curvature(state.window, state.prior, state.modes, k, state.work)
)
gauss_newton_step = kernel(
    lambda state, k: _shared.gauss_newton_step(state.window, state.prior, state.modes, k, state.work)
)


def played(world: larl.LatentAR, steps: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return arms and rewards of a trial with random arms."""
    result = larl.compare({"it": larl.Random()}, world, horizon=steps, trials=1, seed=seed)
    return result.arm.values[0, 0].astype(int), result.reward.values[0, 0]


def updated_state(spec: larl.SharedLARL, arms: np.ndarray, rewards: np.ndarray, count: int) -> tuple:
    """Return the State after a history."""
    state = spec.init(count)
    for arm, reward in zip(arms, rewards, strict=True):
        learn(state, int(arm), float(reward))
    return state


def split(theta: np.ndarray, s: int) -> tuple[np.ndarray, float, float, np.ndarray, np.ndarray]:
    """Return g, o, ζ, m, ℓ."""
    return theta[:s], theta[s], theta[s + 1], theta[s + 2 :: 2], theta[s + 3 :: 2]


def residuals(theta: np.ndarray, sign: np.ndarray, slots: np.ndarray, values: np.ndarray, s: int) -> np.ndarray:
    """Return e_t of a complete history, in NumPy."""
    g, _, zeta, m, level = split(theta, s)
    y = np.where(slots < 0, 0.0, sign[slots] * (values - m[slots]) * np.exp(-level[slots]))
    e = np.array([y[t] - g[: min(t, s)] @ y[max(t - s, 0) : t][::-1] for t in range(len(y))])
    return (e * np.exp(-zeta * shares(len(y), s)))[slots >= 0]


def shares(steps: int, s: int) -> np.ndarray:
    t = np.arange(steps)
    return np.where(t < s, 1.0 - _shared.START_RAMP * t / s, 0.0)


def mean_distances(theta: np.ndarray, s: int) -> np.ndarray:
    _, o, _, m, level = split(theta, s)
    return (m - o) * np.exp(-level.mean()) / _prior.MEAN_SPREAD


def posterior(theta: np.ndarray, sign: np.ndarray, slots: np.ndarray, values: np.ndarray, prior: tuple) -> float:
    """Return the negative log posterior, in NumPy."""
    s, anchor = len(prior.precision), prior.log_scale[0]
    g, _, zeta, _, level = split(theta, s)

    def student(e: np.ndarray, nu: float) -> float:
        return float(np.sum((nu + 1.0) / 2.0 * np.log(1.0 + e**2 / nu)))

    data = student(residuals(theta, sign, slots, values, s), _shared.NU) + level[slots[slots >= 0]].sum()
    return (
        data
        + zeta * shares(len(slots), s)[slots >= 0].sum()
        - level.mean()
        + 0.5 * prior.precision @ g**2
        + 0.5 * _prior.START_PRECISION * (zeta - _prior.START_LOG_SD) ** 2
        + student(mean_distances(theta, s), _prior.MEAN_SPREAD_NU)
        + 0.5 * _prior.SCALE_PRECISION * np.sum((level - level.mean()) ** 2)
        + 0.5 * _prior.ANCHOR_PRECISION * (level.mean() - anchor) ** 2
        + 0.5 * _prior.SMALL_SCALE_PENALTY * np.sum(np.exp(2.0 * (anchor - level)))
    )


def case(s: int = 3, steps: int = 40, missing: tuple[int, ...] = ()) -> tuple:
    """Return a State, parameters drawn around its own, and its signs, slots and values."""
    arms, rewards = played(THREE_ARMS, steps)
    rewards[list(missing)] = np.nan
    state = updated_state(larl.SharedLARL(s), arms, rewards, 3)
    theta = state.modes.theta[0] + 0.3 * np.random.default_rng(1).normal(size=s + 8)
    state.modes.theta[0] = theta
    return state, theta, (state.modes.sign[0], state.window.slot[:steps], state.window.value[:steps])


@pytest.mark.parametrize("missing", [(), (2, 7, 8, 30)], ids=["", "missing"])
def test_objective_and_gradient_equal_log_posterior(missing):
    state, theta, seen = case(missing=missing)
    assert gradient_and_curvature(state, 0) == pytest.approx(posterior(theta, *seen, state.prior), rel=1e-12)
    numerical = approx_fprime(theta, posterior, 1e-7, *seen, state.prior)
    assert np.allclose(state.work.gradient, numerical, rtol=1e-4, atol=1e-3)


def test_curvature_is_gauss_newton():
    state, theta, seen = case()
    s, d, steps = 3, theta.size, seen[1].size

    def weight(e: np.ndarray, nu: float) -> np.ndarray:
        return np.diag((nu + 1.0) / (nu + e**2))

    def jacobian(f) -> np.ndarray:
        return np.array([(f(theta + 1e-6 * unit) - f(theta - 1e-6 * unit)) / 2e-6 for unit in np.eye(d)]).T

    rows, spread = jacobian(lambda x: residuals(x, *seen, s)), jacobian(lambda x: mean_distances(x, s))
    scales = np.zeros((steps, d))  # the gradient of each row's log sd
    scales[np.arange(steps), s + 3 + 2 * seen[1]] = 1.0
    scales[:, s + 1] = shares(steps, s)
    expected = rows.T @ weight(residuals(theta, *seen, s), _shared.NU) @ rows + scales.T @ scales
    expected += spread.T @ weight(mean_distances(theta, s), _prior.MEAN_SPREAD_NU) @ spread
    expected[np.arange(s), np.arange(s)] += state.prior.precision
    expected[s + 1, s + 1] += _prior.START_PRECISION
    centre = np.eye(3) - 1.0 / 3.0
    low = 2.0 * _prior.SMALL_SCALE_PENALTY * np.exp(2.0 * (state.prior.log_scale[0] - theta[s + 3 :: 2]))
    expected[s + 3 :: 2, s + 3 :: 2] += _prior.SCALE_PRECISION * centre + _prior.ANCHOR_PRECISION / 9.0 + np.diag(low)
    gradient_and_curvature(state, 0)
    assert np.allclose(state.modes.factor[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("steps", [15, 60, 150])
def test_fit_equals_scipy_optimum(steps):
    s = 4
    state = updated_state(larl.SharedLARL(s), *played(THREE_ARMS, steps), 3)
    seen = (state.window.slot[:steps], state.window.value[:steps], state.prior)
    for k in range(state.time[1]):
        for _ in range(60):
            gauss_newton_step(state, k)
        optimum = minimize(posterior, state.modes.theta[k], (state.modes.sign[k], *seen), method="BFGS")
        assert posterior(state.modes.theta[k], state.modes.sign[k], *seen) <= optimum.fun + 1e-6
        assert np.allclose(state.modes.theta[k], optimum.x, atol=1e-2)


def test_one_step_per_reward_stays_near_the_optimum():
    # The decrement gradientᵀ curvature⁻¹ gradient is about twice the distance of the objective from its minimum.
    state = updated_state(larl.SharedLARL(), *played(THREE_ARMS, 200), 3)
    best = int(np.argmax(state.modes.evidence[: state.time[1]]))
    assert gauss_newton_step(state, best) < 0.1


def test_true_parameters_have_no_residual_without_innovations():
    s, steps = 6, 60
    world = larl.LatentAR((0.5, 0.3), (-1.0, 0.4, 1.5), (0.2, 0.5, -0.1), gamma0=0.3, sigma_z=0.8, sigma_r=0.7)
    theta_a, rng = theory.reward_parameters(world, s), np.random.default_rng(2)
    beta, mu = np.array(world.beta), np.array(world.mu)
    arms, rewards = rng.integers(3, size=steps), list(rng.normal(size=s) * 3.0)
    for t in range(s, steps):
        context = np.zeros((2, s, 3))
        context[0, np.arange(s), arms[t - s : t]], context[1, np.arange(s), arms[t - s : t]] = rewards[-s:], 1.0
        rewards.append(np.append(context.ravel(), 1.0) @ theta_a[arms[t]])
    # Entry (lag j, arm 0) of θ_0 is g_j; the intercept is μ_a + β_a·drift, and y moves around drift/(1 − Σg).
    g = theta_a[0, : 3 * s].reshape(s, 3)[::-1, 0]
    centre = (theta_a[0, -1] - mu[0]) / beta[0] / (1.0 - g.sum())
    truth = np.concatenate([g, [0.0, 0.0], np.column_stack([mu + beta * centre, np.log(np.abs(beta))]).ravel()])
    assert np.abs(residuals(truth, np.sign(beta), arms, np.array(rewards), s)[s:]).max() < 1e-10
    state = larl.SharedLARL(s).init(3)
    state.window.slot[:steps], state.window.value[:steps], state.window.size[:] = arms, rewards, (steps, s, 3)
    state.modes.theta[0], state.modes.sign[0] = truth, np.sign(beta)
    gradient_and_curvature(state, 0)
    seen = state.work.gradient.copy()
    state.window.size[1] = steps  # no rows: only the prior
    gradient_and_curvature(state, 0)
    data = seen - state.work.gradient
    data[s + 3 :: 2] -= np.bincount(arms[s:], minlength=3)  # the Jacobian, +1 for each row of the arm
    assert np.abs(data).max() < 1e-9


def test_window_has_no_effect_until_full_and_little_after():
    arms, rewards = played(THREE_ARMS, 300)
    short, long = (larl.SharedLARL(4, window=w).init(3) for w in (80, 296))
    gaps, sizes, same = [], [], []
    for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
        for state in (short, long):
            learn(state, int(arm), float(reward))
        if t < 84:
            assert np.array_equal(short.score, long.score)
        else:
            gaps.append(short.score - long.score)
            sizes.append(long.score)
            same.append(decide(short, 0) == decide(long, 0))
    assert short.window.slot.size == 84
    assert np.std(gaps) < 0.05 * np.std(sizes)
    assert np.mean(same) > 0.95


def test_power_of_two_factor_changes_no_score():
    world = replace(worlds.paper(5), start="stationary")
    arms, rewards = played(world, 120)
    states = [larl.SharedLARL().init(2) for _ in range(3)]
    for arm, reward in zip(arms, rewards, strict=True):
        for state, factor in zip(states, (1.0, 2.0**-40, 2.0**30), strict=True):
            learn(state, int(arm), float(reward * factor))
        assert all(np.array_equal(state.score, states[0].score) for state in states)


@pytest.mark.parametrize(("shift", "factor"), [(1000.0, 1.0), (-1000.0, 1.0), (0.0, 1e-3), (0.0, 1e3), (50.0, 0.3)])
def test_units_change_only_rounding(shift, factor):
    # Compared after the fits have converged; before that, the scale affects where they start.
    arms, rewards = played(THREE_ARMS, 150)
    plain, other = larl.SharedLARL().init(3), larl.SharedLARL().init(3)
    for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
        learn(plain, int(arm), float(reward))
        learn(other, int(arm), float(factor * reward + shift))
        if t >= 30:
            assert np.allclose(
                other.score * other.offset_scale[1] / factor, plain.score * plain.offset_scale[1], atol=1e-3
            )


def test_distant_means_are_learned():
    # If each arm's rewards are shifted by a thousand or more, predictions shift with them, to a tenth of the noise.
    arms, rewards = played(THREE_ARMS, 200)
    moved = np.array([0.0, 1000.0, -5000.0])
    plain = updated_state(larl.SharedLARL(alpha=0.0), arms, rewards, 3)
    other = updated_state(larl.SharedLARL(alpha=0.0), arms, rewards + moved[arms], 3)
    forecast = [state.score * state.offset_scale[1] + state.offset_scale[0] for state in (plain, other)]
    assert np.abs(forecast[1] - moved - forecast[0]).max() < 0.1 * theory.noise_scale(THREE_ARMS).max()


EXTREME = {
    "constant": lambda t, a: 3.7,
    "constant for each arm": lambda t, a: float(a),
    "rounding": lambda t, a: 0.1 * a + 1e-16 * (t % 3),
    "alternating": lambda t, a: (-1.0) ** t,
    "alternating with 1e140": lambda t, a: 1e140 * (-1.0) ** t,
    "one jump": lambda t, a: 1e9 if t == 40 else np.sin(t),
    "jumps": lambda t, a: 1e6 * (t % 7 == 0) + np.sin(t),
    "growing": lambda t, a: 1.3**t,
    "shrinking": lambda t, a: 0.2**t,
    "from 0 to 1e150": lambda t, a: 0.0 if t < 20 else 1e-300 if t < 40 else 1e150,
    "binary": lambda t, a: float((t * 7919 + a) % 2),
    "late": lambda t, a: 0.0 if t < 150 else np.sin(t),
}


@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("count", [2, 6])
def test_extreme_rewards_leave_every_number_finite(name, count):
    state = larl.SharedLARL(4, window=60).init(count)
    rng = np.random.default_rng(0)
    for t in range(260):
        arm = decide(state, int(rng.integers(2**63)))
        learn(state, arm, float(EXTREME[name](t, arm)))
        fields = [each for part in (state.modes, state.window, (state.score, state.offset_scale)) for each in part]
        assert all(np.isfinite(each).all() for each in fields)


def test_best_of_constant_arms_is_found():
    state = larl.SharedLARL().init(3)
    choices = []
    for t in range(60):
        choices.append(decide(state, t))
        learn(state, choices[-1], float(choices[-1]))
    assert set(choices[20:]) == {2}


def test_update_is_deterministic_and_modes_differ_in_signs():
    arms, rewards = played(THREE_ARMS, 80)
    first, second = (updated_state(larl.SharedLARL(), arms, rewards, 3) for _ in range(2))
    for left, right in zip(copy_state(first).modes, second.modes, strict=True):
        assert np.array_equal(left, right)
    signs = {tuple(each) for each in first.modes.sign[: first.time[1]]}
    assert len(signs) == first.time[1] == 4
    assert all(each[0] == 1.0 for each in signs)


def test_signs_are_found_with_fewer_modes_than_sign_choices():
    # Eight arms have 128 sign choices; there are four modes.
    beta = (1.0, -1.0, 0.8, -0.7, 1.2, 1.1, -0.9, -1.3)
    world = larl.LatentAR((0.95,), beta, (0.0,) * 8, sigma_r=0.3)
    state = updated_state(larl.SharedLARL(3, window=400), *played(world, 400), 8)
    best = int(np.argmax(state.modes.evidence[: state.time[1]]))
    by_slot = np.sign(beta)[np.argsort(state.arm_slot)]
    assert np.array_equal(state.modes.sign[best], by_slot * by_slot[0])


def test_regret_is_below_larl_bic_in_paper_world_1():
    policies = {"shared": larl.SharedLARL(), "BIC": larl.LARLBIC(40)}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=60, seed=1).total("k").squeeze().values
    gain = total[1] - total[0]
    assert gain.mean() > 5.0 * gain.std() / np.sqrt(60)


def test_regret_with_stationary_arms_is_below_half_of_larl_bic():
    # UCB, which knows the scale, has less.
    world = larl.LatentAR((0.5,), (0.0, 0.0, 0.0), (0.0, 0.5, 1.0), noise="common")
    policies = {"shared": larl.SharedLARL(), "BIC": larl.LARLBIC(40)}
    total = larl.compare(policies, world, horizon=200, trials=200, seed=1).total("k").squeeze().values
    excess = total[0] - total[1] / 2.0
    assert excess.mean() < -4.0 * excess.std() / np.sqrt(200)
