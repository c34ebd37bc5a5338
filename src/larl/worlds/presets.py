"""Ready-made worlds: the paper's three, and random worlds with a given spectral radius or persistence."""

from typing import Any

import numpy as np

from larl._core.validation import InvalidValue, integer, number
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_markov import LatentMarkov
from larl.worlds.latent_var import LatentVAR
from larl.worlds.start import Normal

PAPER_GAMMAS: dict[int, tuple[float, ...]] = {
    1: (0.9,),
    5: (
        0.20916055274476228,
        -0.2190633204475691,
        -0.2809366795524309,
        0.057676115643902896,
        0.23316333161133482,
    ),
    10: (
        0.08349499177393256,
        -0.14150353166531912,
        -0.17401319614301128,
        0.0039016369765197106,
        0.09610659552025635,
        -0.06639956134666206,
        0.23938410877876995,
        0.07711266695052135,
        -0.03469180500704815,
        -0.0833919058379593,
    ),
}


def paper(k: int) -> LatentAR:
    """Return the paper's world of order k: β = (−1, 1), μ = 0, σ_z = σ_r = 1, z_0 … z_{k−1} ~ N(0, 10²).

    Parameters
    ----------
    k : {1, 5, 10}
        Order of the latent process.

    Returns
    -------
    LatentAR

    Raises
    ------
    InvalidValue
        If k is not 1, 5 or 10.

    Examples
    --------
    >>> import larl
    >>> larl.worlds.paper(1).gammas
    (0.9,)
    """
    if not isinstance(k, int) or k not in PAPER_GAMMAS:
        raise InvalidValue("worlds.paper", "k", k, "1, 5 or 10")
    return LatentAR(gammas=PAPER_GAMMAS[k], beta=(-1.0, 1.0), mu=(0.0, 0.0), start=Normal(0.0, 10.0))


def random(k: int, arms: int, seed: int, radius: float = 0.9) -> LatentAR:
    """Return a random stable `LatentAR` with σ_z = σ_r = 1 and a stationary start.

    γ is uniform on [−1, 1]ᵏ. Then γ_j ← γ_j cʲ multiplies every eigenvalue of Γ by c, so that the spectral radius is
    `radius`. β and μ are standard normal.

    Parameters
    ----------
    k : int, >= 1
        Order of the latent process.
    arms : int, >= 2
        Number of arms.
    seed : int, >= 0
        The same seed gives the same world.
    radius : float, in (0, 1), default 0.9
        Spectral radius of Γ: how persistent the latent process is.

    Returns
    -------
    LatentAR

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random(k=2, arms=3, seed=7)
    >>> world.arms, round(world.spectral_radius, 3)
    (3, 0.9)
    """
    gammas, beta, mu = _draw_parameters("worlds.random", 1, k, arms, seed, radius)
    return LatentAR(gammas=gammas.ravel().tolist(), beta=beta.ravel().tolist(), mu=mu.tolist())


def random_vector(m: int, k: int, arms: int, seed: int, radius: float = 0.9) -> LatentVAR:
    """Return a random stable `LatentVAR`; as `random`, with a latent state of m components.

    Parameters
    ----------
    m : int, >= 1
        Number of components of the latent state.
    k : int, >= 1
        Order of the latent process.
    arms : int, >= 2
        Number of arms.
    seed : int, >= 0
        The same seed gives the same world.
    radius : float, in (0, 1), default 0.9
        Spectral radius of the companion matrix.

    Returns
    -------
    LatentVAR

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_vector(m=2, k=1, arms=3, seed=7)
    >>> world.m, world.arms, round(world.spectral_radius, 3)
    (2, 3, 0.9)
    """
    m = integer(1)("worlds.random_vector", "m", m)
    gammas, beta, mu = _draw_parameters("worlds.random_vector", m, k, arms, seed, radius)
    return LatentVAR(gammas=gammas.tolist(), beta=beta.tolist(), mu=mu.tolist())


def random_markov(states: int, arms: int, seed: int, persistence: float = 0.95, sigma_r: float = 1.0) -> LatentMarkov:
    """Return a random `LatentMarkov` with a stationary start.

    A state stays with probability `persistence`; the other probabilities of its row are a uniformly distributed share
    of the rest. The means are standard normal. With two or more states they are drawn again until the best arm is not
    the same in all states.

    Parameters
    ----------
    states : int, >= 1
        Number of states.
    arms : int, >= 2
        Number of arms.
    seed : int, >= 0
        The same seed gives the same world.
    persistence : float, in [0, 1), default 0.95
        Probability of staying in a state.
    sigma_r : float, >= 0, default 1.0
        Standard deviation of the reward noise, in units of the reward.

    Returns
    -------
    LatentMarkov

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_markov(states=3, arms=2, seed=7, persistence=0.9)
    >>> world.states, world.arms, world.transition[0][0]
    (3, 2, 0.9)
    """
    states, arms = (
        integer(1)("worlds.random_markov", "states", states),
        integer(2)("worlds.random_markov", "arms", arms),
    )
    persistence = number(0.0, below=1.0)("worlds.random_markov", "persistence", persistence)
    generator = np.random.default_rng(integer(0)("worlds.random_markov", "seed", seed))
    transition = np.eye(states)
    for state in range(states if states > 1 else 0):
        others = np.arange(states) != state
        transition[state, others] = (1.0 - persistence) * generator.dirichlet(np.ones(states - 1))
        transition[state, state] = persistence
    means = generator.normal(size=(states, arms))
    while states > 1 and np.ptp(means.argmax(axis=1)) == 0:
        means = generator.normal(size=(states, arms))
    return LatentMarkov(transition=transition.tolist(), means=means.tolist(), sigma_r=sigma_r)


def _draw_parameters(owner: str, m: int, k: int, arms: int, seed: int, radius: float) -> tuple[Any, Any, Any]:
    """Return random gammas (k, m, m), beta (arms, m) and mu (arms,)."""
    k, arms = integer(1)(owner, "k", k), integer(2)(owner, "arms", arms)
    radius = number(above=0.0, below=1.0)(owner, "radius", radius)
    generator = np.random.default_rng(integer(0)(owner, "seed", seed))
    gammas = generator.uniform(-1.0, 1.0, (k, m, m))
    companion = np.eye(m * k, k=-m)
    companion[:m] = np.concatenate(list(gammas), axis=1)
    scale = radius / np.abs(np.linalg.eigvals(companion)).max()
    gammas *= (scale ** np.arange(1, k + 1))[:, None, None]
    return gammas, generator.normal(size=(arms, m)), generator.normal(size=arms)
