"""Named worlds: the paper's three, and random ones of a wanted persistence."""

import numpy as np

from larl._check import InvalidValue, number, whole
from larl.world import LatentAR, Normal

PAPER_GAMMAS: dict[int, tuple[float, ...]] = {
    1: (0.9,),
    5: (
        0.20916055274476228, -0.2190633204475691, -0.2809366795524309, 0.057676115643902896, 0.23316333161133482,
    ),
    10: (
        0.08349499177393256, -0.14150353166531912, -0.17401319614301128, 0.0039016369765197106, 0.09610659552025635,
        -0.06639956134666206, 0.23938410877876995, 0.07711266695052135, -0.03469180500704815, -0.0833919058379593,
    ),
}  # fmt: skip


def paper(k: int) -> LatentAR:
    """The paper's world of order k = 1, 5 or 10: β = (−1, 1), μ = 0, unit noises, z_0 … z_{k−1} ~ N(0, 10²)."""
    if not isinstance(k, int) or k not in PAPER_GAMMAS:
        raise InvalidValue("worlds.paper", "k", k, "1, 5 or 10")
    return LatentAR(gammas=PAPER_GAMMAS[k], beta=(-1.0, 1.0), mu=(0.0, 0.0), start=Normal(0.0, 10.0))


def random(k: int, arms: int, seed: int, radius: float = 0.9) -> LatentAR:
    """A stable world whose Γ has spectral radius `radius`: γ, β and μ drawn from `seed`, unit noises, stationary start.

    γ is drawn uniformly, then γ_j ← γ_j cʲ multiplies every eigenvalue of Γ by c; β and μ are standard normal.
    """
    k, arms = whole(1)("worlds.random", "k", k), whole(2)("worlds.random", "arms", arms)
    radius = number(above=0.0, below=1.0)("worlds.random", "radius", radius)
    generator = np.random.default_rng(whole(0)("worlds.random", "seed", seed))
    gammas = generator.uniform(-1.0, 1.0, k)
    companion = np.eye(k, k=-1)
    companion[0] = gammas
    scale = radius / np.abs(np.linalg.eigvals(companion)).max()
    gammas *= scale ** np.arange(1, k + 1)
    return LatentAR(
        gammas=gammas.tolist(), beta=generator.normal(size=arms).tolist(), mu=generator.normal(size=arms).tolist()
    )
