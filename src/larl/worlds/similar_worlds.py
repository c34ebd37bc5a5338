"""Random worlds around a given one: the units of a population."""

import math

import numpy as np

from larl._core.validation import instance, integer, number
from larl.worlds.kernels import Floats
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants.population import Population

MAX_TRANSFORMED = 6.0  # of atanh of a partial autocorrelation


def random_population(base: LatentAR, members: int, spread: float, seed: int) -> Population:
    """Return a `Population` of worlds whose parameters differ from those of `base`.

    γ, β, μ and σ_r of a member are drawn independently; γ₀, σ_z and the start are those of `base`. With n a standard
    normal number of its own: a partial autocorrelation r of z becomes tanh(atanh(r)(1 + spread·n)), with an argument of
    at most 6 in size, so that every member is stable; β_a becomes β_a(1 + spread·n); μ_a becomes μ_a + spread·sd_a·n,
    with sd_a the noise of the arm in `base`; σ_r becomes σ_r·exp(spread·n).

    Parameters
    ----------
    base : LatentAR
        The world in the middle of the population.
    members : int, >= 1
        Number of members.
    spread : float, 0 to 10
        Relative standard deviation of the parameters: 0.3 means units that are 30% apart.
    seed : int, >= 0
        The same seed gives the same members.

    Returns
    -------
    Population

    Raises
    ------
    InvalidValue
        If `base` is not a LatentAR, or a number is out of range.

    Examples
    --------
    >>> import larl
    >>> base = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))
    >>> world = larl.worlds.random_population(base, members=3, spread=0.3, seed=1)
    >>> [round(member.gammas[0], 2) for member in world.members]
    [0.93, 0.84, 0.82]
    """
    owner = "worlds.random_population"
    instance(LatentAR, "a larl.LatentAR")(owner, "base", base)
    members, seed = integer(1)(owner, "members", members), integer(0)(owner, "seed", seed)
    spread, generator = number(0.0, 10.0)(owner, "spread", spread), np.random.default_rng(seed)
    transformed = np.arctanh(partial_autocorrelations(np.array(base.gammas)))

    def member() -> LatentAR:
        moved = transformed * (1.0 + spread * generator.standard_normal(base.k))
        partials = np.tanh(np.clip(moved, -MAX_TRANSFORMED, MAX_TRANSFORMED))
        beta = np.array(base.beta) * (1.0 + spread * generator.standard_normal(base.arms))
        mu = np.array(base.mu) + spread * base.sd * generator.standard_normal(base.arms)
        return LatentAR(
            gammas=coefficients(partials).tolist(),
            beta=beta.tolist(),
            mu=mu.tolist(),
            gamma0=base.gamma0,
            sigma_z=base.sigma_z,
            sigma_r=base.sigma_r * math.exp(spread * generator.standard_normal()),
            noise=base.noise,
            start=base.start,
        )

    return Population([member() for _ in range(members)])


def partial_autocorrelations(gammas: Floats) -> Floats:
    """Return the partial autocorrelations of a stable AR process: the Durbin–Levinson recursion backwards."""
    remaining, partials = gammas, np.zeros(gammas.size)
    for j in range(gammas.size - 1, -1, -1):
        partials[j] = remaining[j]
        remaining = (remaining[:j] + partials[j] * remaining[:j][::-1]) / (1.0 - partials[j] ** 2)
    return partials


def coefficients(partials: Floats) -> Floats:
    """Return the coefficients of the AR process with these partial autocorrelations."""
    gammas = np.zeros(0)
    for partial in partials:
        gammas = np.append(gammas - partial * gammas[::-1], partial)
    return gammas
