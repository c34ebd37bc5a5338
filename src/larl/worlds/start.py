"""Distributions of the first k latent states of a world."""

from dataclasses import field

from larl._core.validation import Matrix, Vector, check_fields, checked, covariance, number, numbers, required, spec


@spec
class Normal:
    """Start distribution: z_0 … z_{k−1} are independent, each N(mean, sd²).

    Parameters
    ----------
    mean : float, default 0.0
        Mean of each state.
    sd : float, >= 0, default 1.0
        Standard deviation of each state.

    Examples
    --------
    >>> import larl
    >>> larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0), start=larl.Normal(5.0, 0.0)).path(1)
    array([5.])
    """

    mean: float = checked(number(), 0.0)
    sd: float = checked(number(0.0), 1.0)

    def __post_init__(self) -> None:
        check_fields(self)


@spec
class JointNormal:
    """Start distribution: (z_0 … z_{k−1}) is jointly normal.

    Parameters
    ----------
    mean : sequence of float
        Mean; mk numbers, the m components of z_0, then those of z_1, ….
    cov : matrix, mk × mk
        Covariance, positive semidefinite.

    Examples
    --------
    >>> import larl
    >>> start = larl.JointNormal(mean=(1.0, 2.0), cov=((0.0, 0.0), (0.0, 0.0)))
    >>> larl.LatentAR(gammas=(0.5, 0.2), beta=(-1, 1), mu=(0, 0), start=start).path(2)
    array([1., 2.])
    """

    mean: Vector = required(numbers())
    cov: Matrix = field()

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "cov", covariance(len(self.mean))("JointNormal", "cov", self.cov))
