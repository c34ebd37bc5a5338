"""Distributions of the first k latent states of a world."""

from dataclasses import field

from larl._core.validation import Matrix, Vector, check_fields, checked, covariance, number, numbers, required, spec


@spec
class Normal:
    """z_0 … z_{k−1} independent, each N(mean, sd²)."""

    mean: float = checked(number(), 0.0)
    sd: float = checked(number(0.0), 1.0)

    def __post_init__(self) -> None:
        check_fields(self)


@spec
class JointNormal:
    """(z_0 … z_{k−1}) jointly normal with this mean and covariance; the components of one z are neighbours."""

    mean: Vector = required(numbers())
    cov: Matrix = field()

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "cov", covariance(len(self.mean))("JointNormal", "cov", self.cov))
