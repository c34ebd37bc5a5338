"""The predicted regret of LARL(s) and the best s, against closed forms, exact filters and simulations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import toeplitz

import larl
from larl.statespace.steady_state import steady_state
from larl.theory import best_lookback, predicted_regret
from larl.theory.lookback import _choice_probability, _prediction_variance

AR1 = larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
AR2 = larl.LatentAR(gammas=(0.5, 0.3), beta=(-1.0, 1.0), mu=(0.4, 0.4), sigma_r=2.0)
UNEQUAL = larl.LatentAR(
    gammas=(0.6, 0.3), beta=(-0.5, 1.0, 0.2), mu=(0.0, 0.3, 1.0), gamma0=0.1, sigma_r=0.7, noise="common"
)


def autocovariances(world: larl.LatentAR, count: int) -> np.ndarray:
    """Return Cov(z_t, z_{t−j}) for j < count, from powers of the companion matrix."""
    powers = [np.linalg.matrix_power(world.system.gamma, j) for j in range(count)]
    return np.array([(power @ world.stationary_cov)[0, 0] for power in powers])


@pytest.mark.parametrize("world", [AR1, AR2])
@pytest.mark.parametrize("s", [0, 1, 2, 5])
@pytest.mark.parametrize("horizon", [3, 200, 5000])
def test_two_symmetric_arms_have_the_closed_form(world: larl.LatentAR, s: int, horizon: int) -> None:
    """√(2S/π) [s + Σ_t (1 − ρ/√(1 + R²(3s + 1)/(tV)))], summed over every step."""
    cov = autocovariances(world, s + 1)
    variance = cov[1:] @ np.linalg.solve(toeplitz(cov[:s]) + world.sigma_r**2 * np.eye(s), cov[1:]) if s else 0.0
    noise, t = cov[0] - variance + world.sigma_r**2, np.arange(1, horizon - min(s, horizon) + 1)
    correlation = variance / np.sqrt(cov[0] * (variance + noise * (3 * s + 1) / t))
    expected = np.sqrt(2.0 * cov[0] / np.pi) * (min(s, horizon) + np.sum(1.0 - correlation))
    assert predicted_regret(world, s, horizon) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("k", [1, 5])
def test_long_contexts_predict_as_well_as_the_kalman_filter(k: int) -> None:
    world = replace(larl.worlds.paper(k), start="stationary")
    filtered = world.stationary_var - steady_state(world).cov[0, 0]
    assert _prediction_variance(world, 60, np.array([0.7, 0.3])) == pytest.approx(filtered, rel=1e-6)


def test_prediction_variance_of_unequal_arms_is_that_of_a_regression_on_contexts() -> None:
    """A least-squares fit on 200,000 simulated contexts with independent arms explains this share of Var z."""
    rng, s, shares, steps = np.random.default_rng(5), 2, np.array([0.2, 0.3, 0.5]), 200_000
    z = UNEQUAL.path(steps, seed=3)
    arms = rng.choice(3, steps, p=shares)
    rewards = np.take(UNEQUAL.mu, arms) + np.take(UNEQUAL.beta, arms) * z + 0.7 * rng.standard_normal(steps)
    is_arm = arms[:, None] == np.arange(3)
    lagged = [block[s - j : steps - j] for j in range(1, s + 1) for block in (is_arm, is_arm * rewards[:, None])]
    x = np.hstack([np.ones((steps - s, 1)), *lagged]).astype(float)
    fitted = x @ np.linalg.lstsq(x, z[s:], rcond=None)[0]
    explained = [
        part.var() / whole.var()
        for part, whole in zip(np.array_split(fitted, 100), np.array_split(z[s:], 100), strict=True)
    ]
    bound = 4.0 * np.std(explained) / 10.0
    share = _prediction_variance(UNEQUAL, s, shares) / UNEQUAL.stationary_var
    assert share == pytest.approx(fitted.var() / z.var(), abs=bound)


def test_probability_of_the_largest_prediction_agrees_with_draws() -> None:
    """Three arms, 400,000 draws, four standard errors."""
    means, sd, count = np.array([[0.1, 0.0, -0.4]]), np.array([0.5, 1.0, 0.2]), 400_000
    draws = means + sd * np.random.default_rng(1).standard_normal((count, 3))
    for arm in range(3):
        share = np.mean(draws.argmax(axis=1) == arm)
        assert _choice_probability(means, sd, arm)[0] == pytest.approx(share, abs=4.0 * np.sqrt(0.25 / count))


def test_offsets_and_units_of_rewards_and_the_sign_of_the_state_do_not_matter() -> None:
    regret = predicted_regret(UNEQUAL, 2, 300)
    shifted = replace(UNEQUAL, mu=tuple(5.0 + mu for mu in UNEQUAL.mu))
    scaled = replace(
        UNEQUAL, mu=tuple(3 * mu for mu in UNEQUAL.mu), beta=tuple(3 * b for b in UNEQUAL.beta), sigma_r=2.1
    )
    mirrored = replace(UNEQUAL, beta=tuple(-b for b in UNEQUAL.beta), gamma0=-UNEQUAL.gamma0)
    assert predicted_regret(shifted, 2, 300) == pytest.approx(regret, rel=1e-9)
    assert predicted_regret(scaled, 2, 300) == pytest.approx(3.0 * regret, rel=1e-9)
    assert predicted_regret(mirrored, 2, 300) == pytest.approx(regret, rel=1e-9)


def test_an_arm_that_nobody_plays_changes_nothing_else() -> None:
    """A third arm far below the others is played early only."""
    third = replace(AR1, beta=(-1.0, 1.0, 0.5), mu=(0.0, 0.0, -30.0), noise="common")
    per_step = [predicted_regret(world, 1, 40_000) - predicted_regret(world, 1, 20_000) for world in (AR1, third)]
    assert per_step[1] == pytest.approx(per_step[0], rel=0.05)


@pytest.mark.parametrize(("world", "s"), [(AR1, 1), (AR2, 3)])
def test_prediction_is_close_to_simulated_regret(world: larl.LatentAR, s: int) -> None:
    """300 trials of 500 steps: within 12% and three standard errors; exploration bonus and ridge are not modelled."""
    summary = larl.compare({"LARL": larl.LARL(s=s)}, world, horizon=500, trials=300, seed=11, keep="summary").summary()
    mean, error = summary["mean"].item(), summary["se"].item()
    assert predicted_regret(world, s, 500) == pytest.approx(mean, abs=0.12 * mean + 3.0 * error)


def test_longer_trials_and_noisier_rewards_need_longer_contexts() -> None:
    noisy = replace(AR1, sigma_r=4.0)
    assert [best_lookback(noisy, horizon) for horizon in (50, 200, 1000, 10_000)] == [2, 3, 4, 7]
    assert best_lookback(replace(AR1, sigma_r=0.0), 1000) == 1  # the last reward tells z exactly
    assert best_lookback(replace(AR1, gammas=(0.0,)), 1000) == 0  # past rewards tell nothing


def test_arms_and_worlds_without_noise_have_finite_predictions() -> None:
    still = replace(AR1, beta=(-1.0, 0.0, 1.0), mu=(0.0, 0.5, 0.0))  # noise is scaled by β: arm 1 always pays 0.5
    constant = replace(AR1, sigma_z=0.0, sigma_r=0.0, mu=(0.0, 1.0))
    assert 0.0 < predicted_regret(still, 2, 500) < 500 * larl.theory.random_regret(still)
    assert predicted_regret(constant, 0, 500) == pytest.approx(0.0, abs=1.0)


def test_best_lookback_has_the_smallest_predicted_regret() -> None:
    regrets = [predicted_regret(AR2, s, 1000) for s in range(25)]
    assert best_lookback(AR2, 1000) == int(np.argmin(regrets))


def test_arguments_are_checked() -> None:
    with pytest.raises(larl.InvalidValue, match=r"world = .* is not usable; accepted: a larl.LatentAR"):
        best_lookback(larl.UCB(), 100)  # type: ignore[arg-type]
    with pytest.raises(larl.InvalidValue, match=r"s = 201 .* accepted: at most 200 for 2 arms"):
        predicted_regret(AR1, 201, 1000)
    with pytest.raises(larl.InvalidValue, match="horizon = 0"):
        predicted_regret(AR1, 1, 0)
