"""Named worlds: the paper's three, and random ones of a wanted persistence."""

from typing import Any

import numpy as np

from larl._core.validation import InvalidValue, integer, number
from larl.worlds.latent_ar import LatentAR
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
    """The paper's world of order k = 1, 5 or 10: β = (−1, 1), μ = 0, unit noises, z_0 … z_{k−1} ~ N(0, 10²)."""
    if not isinstance(k, int) or k not in PAPER_GAMMAS:
        raise InvalidValue("worlds.paper", "k", k, "1, 5 or 10")
    return LatentAR(gammas=PAPER_GAMMAS[k], beta=(-1.0, 1.0), mu=(0.0, 0.0), start=Normal(0.0, 10.0))


def random(k: int, arms: int, seed: int, radius: float = 0.9) -> LatentAR:
    """A stable world whose Γ has spectral radius `radius`: γ, β and μ drawn from `seed`, unit noises, stationary start.

    γ is drawn uniformly, then γ_j ← γ_j cʲ multiplies every eigenvalue of Γ by c; β and μ are standard normal.
    """
    gammas, beta, mu = _drawn("worlds.random", 1, k, arms, seed, radius)
    return LatentAR(gammas=gammas.ravel().tolist(), beta=beta.ravel().tolist(), mu=mu.tolist())


def random_vector(m: int, k: int, arms: int, seed: int, radius: float = 0.9) -> LatentVAR:
    """As `random`, with m components of the latent state: every entry of the k matrices and of β is drawn alike."""
    m = integer(1)("worlds.random_vector", "m", m)
    gammas, beta, mu = _drawn("worlds.random_vector", m, k, arms, seed, radius)
    return LatentVAR(gammas=gammas.tolist(), beta=beta.tolist(), mu=mu.tolist())


def _drawn(owner: str, m: int, k: int, arms: int, seed: int, radius: float) -> tuple[Any, Any, Any]:
    k, arms = integer(1)(owner, "k", k), integer(2)(owner, "arms", arms)
    radius = number(above=0.0, below=1.0)(owner, "radius", radius)
    generator = np.random.default_rng(integer(0)(owner, "seed", seed))
    gammas = generator.uniform(-1.0, 1.0, (k, m, m))
    companion = np.eye(m * k, k=-m)
    companion[:m] = np.concatenate(list(gammas), axis=1)
    scale = radius / np.abs(np.linalg.eigvals(companion)).max()
    gammas *= (scale ** np.arange(1, k + 1))[:, None, None]
    return gammas, generator.normal(size=(arms, m)), generator.normal(size=arms)
