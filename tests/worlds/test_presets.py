"""The paper's worlds and random worlds."""

import numpy as np
import pytest

import larl
from larl import worlds


@pytest.mark.parametrize("k", [1, 5, 10])
def test_paper_world_parameters(k):
    world = worlds.paper(k)
    assert (world.k, world.arms, world.start) == (k, 2, larl.Normal(0.0, 10.0))
    assert (world.mu, world.beta, world.gamma0) == ((0.0, 0.0), (-1.0, 1.0), 0.0)
    assert (world.sigma_z, world.sigma_r, world.noise) == (1.0, 1.0, "scaled")
    if k > 1:  # drawn as: uniform, centred, divided by the sum of absolute values
        assert sum(world.gammas) == pytest.approx(0.0, abs=1e-12)
        assert np.abs(world.gammas).sum() == pytest.approx(1.0)


def test_unknown_paper_world_is_rejected():
    with pytest.raises(larl.InvalidValue, match="k = 2 is not usable; accepted: 1, 5 or 10"):
        worlds.paper(2)


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("radius", [0.3, 0.99])
def test_random_world_has_the_given_radius(k, radius):
    for seed in range(5):
        world = worlds.random(k, 3, seed, radius=radius)
        assert world.spectral_radius == pytest.approx(radius, rel=1e-6)
        assert world == worlds.random(k, 3, seed, radius=radius)
    assert worlds.random(k, 3, 0) != worlds.random(k, 3, 1)


@pytest.mark.parametrize("radius", [0.0, 1.0, float("nan")])
def test_invalid_radius_is_rejected(radius):
    with pytest.raises(larl.InvalidValue, match="radius"):
        worlds.random(2, 2, 0, radius=radius)
