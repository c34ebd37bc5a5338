"""The number of first steps that a simulated long-run mean leaves out."""

import math


def burn_in_steps(order: int, modulus: float) -> int:
    """Return the steps after which the influence of the start, which decays like modulusᵗ, is below 0.1%."""
    return order + math.ceil(math.log(1e-3) / math.log(min(max(modulus, 1e-3), 0.999)))
