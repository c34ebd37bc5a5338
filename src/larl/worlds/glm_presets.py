"""Ready-made worlds with binary, count or zero-inflated rewards."""

import math
from typing import Any

from larl._core.validation import InvalidValue, number
from larl.worlds.latent_glm import LatentGLM

LATENT_GAMMAS = {1: (0.9,), 2: (1.2, -0.6)}  # by order; of 2: a damped oscillation with a period of about 9 steps
BINARY_BETAS = {2: (-1.5, 1.5), 4: (-1.5, 0.75, -0.75, 1.5)}


def binary(base: float = 0.5, arms: int = 2, order: int = 1) -> LatentGLM:
    """Return a world with rewards 0 and 1 whose best arm changes with the sign of z.

    P(r = 1) = logistic(logit(base) + β_a z), β = (−1.5, 1.5) or (−1.5, 0.75, −0.75, 1.5). z has a stationary start
    and variance 1; γ = 0.9 for order 1 and (1.2, −0.6) for order 2, an oscillation with a period of about 9 steps.

    Parameters
    ----------
    base : float, 0 < base < 1, default 0.5
        P(r = 1) of all arms at z = 0.
    arms : {2, 4}, default 2
        Number of arms.
    order : {1, 2}, default 1
        Order of the latent process.

    Returns
    -------
    LatentGLM

    Raises
    ------
    InvalidValue
        If a value is not accepted.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.binary(base=0.1)
    >>> world.means([-1.0, 0.0, 1.0]).round(2).tolist()
    [[0.33, 0.02], [0.1, 0.1], [0.02, 0.33]]
    """
    base = number(above=0.0, below=1.0)("worlds.binary", "base", base)
    if not isinstance(arms, int) or arms not in BINARY_BETAS:
        raise InvalidValue("worlds.binary", "arms", arms, "2 or 4")
    beta, mu = BINARY_BETAS[arms], (math.log(base) - math.log1p(-base),) * arms
    return LatentGLM(beta=beta, mu=mu, **_unit_variance("worlds.binary", order))


def counts(order: int = 1) -> LatentGLM:
    """Return a world with Poisson rewards: three arms, mean 3 exp(β_a z), β = (0.6, −0.6, 0.3).

    Parameters
    ----------
    order : {1, 2}, default 1
        Order of the latent process, which is that of `binary`.

    Returns
    -------
    LatentGLM

    Examples
    --------
    >>> import larl
    >>> larl.worlds.counts().means([-1.0, 1.0]).round(1).tolist()
    [[1.6, 5.5, 2.2], [5.5, 1.6, 4.0]]
    """
    process = _unit_variance("worlds.counts", order)
    return LatentGLM(beta=(0.6, -0.6, 0.3), mu=(math.log(3.0),) * 3, family="poisson", **process)


def brushing(order: int = 1) -> LatentGLM:
    """Return a world with brushing durations: seconds from 0 to 180, zero-inflated (`LatentGLM`, "hurdle").

    Two arms, μ = 0.5, β = (−1, 1), offset 1. At z = 0 a session takes place with probability 0.82 and lasts 112
    seconds on average.

    Parameters
    ----------
    order : {1, 2}, default 1
        Order of the latent process, which is that of `binary`.

    Returns
    -------
    LatentGLM

    Examples
    --------
    >>> import larl
    >>> larl.worlds.brushing().means([-1.0, 0.0, 1.0]).round(0).tolist()
    [[136.0, 42.0], [92.0, 92.0], [42.0, 136.0]]
    """
    process = _unit_variance("worlds.brushing", order)
    return LatentGLM(beta=(-1.0, 1.0), mu=(0.5, 0.5), family="hurdle", upper=180.0, offset=1.0, **process)


def non_gaussian() -> dict[str, LatentGLM]:
    """Return the eleven worlds in which policies for binary, count and zero-inflated rewards are evaluated, by name.

    `binary` with base 0.5, 0.1 and 0.9 and 2 or 4 arms; with base 0.5 and 0.1 and order 2; `counts`; `brushing` of
    order 1 and 2.

    Returns
    -------
    dict of str to LatentGLM

    Examples
    --------
    >>> import larl
    >>> list(larl.worlds.non_gaussian())[:2]
    ['binary 0.5, 2 arms', 'binary 0.5, 4 arms']
    """
    worlds = {f"binary {base}, {arms} arms": binary(base, arms) for base in (0.5, 0.1, 0.9) for arms in (2, 4)}
    worlds |= {f"binary {base}, AR(2)": binary(base, order=2) for base in (0.5, 0.1)}
    return worlds | {"counts": counts(), "brushing": brushing(), "brushing, AR(2)": brushing(2)}


def _unit_variance(owner: str, order: int) -> dict[str, Any]:
    """Return the parameters of a latent process of stationary variance 1."""
    if not isinstance(order, int) or order not in LATENT_GAMMAS:
        raise InvalidValue(owner, "order", order, "1 or 2")
    gammas = LATENT_GAMMAS[order]
    first, second = (*gammas, 0.0)[:2]
    gain = (1.0 - second) / ((1.0 + second) * ((1.0 - second) ** 2 - first**2))  # stationary variance / σ_z²
    return {"gammas": gammas, "sigma_z": 1.0 / math.sqrt(gain)}
