"""A population plays each trial in the world of its member."""

import numpy as np
import pytest

import larl
from larl.worlds import Population, random_population
from larl.worlds.similar_worlds import coefficients, partial_autocorrelations

CALM = larl.LatentAR(gammas=(0.5, 0.3), beta=(-1.0, 0.4), mu=(0.2, 0.5), gamma0=0.3, sigma_r=0.7)
QUICK = larl.LatentAR(gammas=(-0.5, 0.0), beta=(2.0, 1.0), mu=(0.0, -1.0), start=larl.Normal(1.0, 2.0))


def test_trial_equals_the_same_trial_of_its_member() -> None:
    result = larl.compare({"it": larl.UCB()}, Population([CALM, QUICK]), horizon=30, trials=6, seed=4)
    for member, world in enumerate((CALM, QUICK)):
        alone = larl.compare({"it": larl.UCB()}, world, horizon=30, trials=6, seed=4)
        for name in ("regret", "reward"):
            one, other = (each.data[name].isel(trial=slice(member, None, 2)).values for each in (result, alone))
            assert np.array_equal(one, other)


def test_round_trip_and_refusals() -> None:
    world = Population([CALM, QUICK])
    assert larl.worlds.from_dict(world.to_dict()) == world
    assert hash(world) == hash(Population((CALM, QUICK)))
    with pytest.raises(larl.InvalidValue, match=r"Population: members\[1\]"):
        Population([CALM, larl.worlds.paper(1)])
    with pytest.raises(larl.InvalidValue, match="Population: members = "):
        Population([])
    with pytest.raises(larl.InvalidValue, match="members"):
        larl.worlds.from_dict({"world": "Population", "members": 3})
    with pytest.raises(larl.InvalidValue, match=r"members\[0\]"):
        larl.worlds.from_dict({"world": "Population", "members": [{"world": "Seasonal"}]})


def test_partial_autocorrelations_are_those_of_the_yule_walker_equations() -> None:
    """The j-th partial autocorrelation is the last coefficient of the best linear predictor from j lags."""
    gammas = np.array([0.4, -0.3, 0.2])
    world = larl.LatentAR(gammas=gammas.tolist(), beta=(1, 1), mu=(0, 0))
    cov = world.stationary_cov
    acf = np.append(cov[0], [gammas @ cov[0][[2, 1, 0]]])
    for j in (1, 2, 3):
        toeplitz = acf[np.abs(np.subtract.outer(np.arange(j), np.arange(j)))]
        expected = np.linalg.solve(toeplitz, acf[1 : j + 1])[-1]
        assert partial_autocorrelations(gammas)[j - 1] == pytest.approx(expected, abs=1e-12)
    assert np.allclose(coefficients(partial_autocorrelations(gammas)), gammas)


def test_members_have_the_documented_spread() -> None:
    """Over 4,000 members, the mean and sd of each transformed parameter are within 4 standard errors."""
    spread, count = 0.2, 4000
    members = random_population(CALM, count, spread, 5).members
    transformed = np.arctanh([partial_autocorrelations(np.array(each.gammas)) for each in members])
    drawn = {
        "partials": transformed / np.arctanh(partial_autocorrelations(np.array(CALM.gammas))) - 1.0,
        "beta": np.array([each.beta for each in members]) / np.array(CALM.beta) - 1.0,
        "mu": (np.array([each.mu for each in members]) - np.array(CALM.mu)) / CALM.sd,
        "sigma_r": np.log([[each.sigma_r / CALM.sigma_r] for each in members]),
    }
    for values in drawn.values():
        assert np.all(np.abs(values.mean(axis=0)) < 4.0 * spread / np.sqrt(count))
        assert np.all(np.abs(values.std(axis=0) - spread) < 4.0 * spread / np.sqrt(2 * count))
    same = random_population(CALM, 1, 0.0, 1).members[0]
    assert np.allclose(same.gammas, CALM.gammas)
    assert (same.beta, same.mu, same.sigma_r) == (CALM.beta, CALM.mu, CALM.sigma_r)


def test_members_of_a_persistent_world_are_stable_at_any_spread() -> None:
    base = larl.LatentAR(gammas=(0.99,), beta=(1, 1), mu=(0, 0))
    for seed in range(20):
        assert max(each.spectral_radius for each in random_population(base, 100, 3.0, seed).members) < 1.0


def test_random_population_refuses_bad_arguments() -> None:
    for arguments, field in (((1, 2, 0.1, 0), "base"), ((CALM, 0, 0.1, 0), "members"), ((CALM, 2, -0.1, 0), "spread")):
        with pytest.raises(larl.InvalidValue, match=f"random_population: {field}"):
            random_population(*arguments)  # type: ignore[arg-type]
