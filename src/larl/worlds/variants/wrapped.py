"""The common base of worlds that change one assumption of a latent AR or VAR bandit."""

from typing import Any

from larl._core.validation import check_fields, instance, spec
from larl.worlds.base import LinearGaussianWorld, World


@spec
class WrappedWorld(World):
    """A latent AR or VAR bandit with one assumption changed.

    Parameters
    ----------
    base : LatentAR or LatentVAR
        The world that is changed.
    """

    base: LinearGaussianWorld

    def __post_init__(self) -> None:
        check_fields(self)
        instance(LinearGaussianWorld, "a larl.LatentAR or larl.LatentVAR")(type(self).__name__, "base", self.base)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return self.base.arms

    @property
    def k(self) -> int:  # type: ignore[override]
        """Order of the latent process."""
        return self.base.k

    def state_of(self, latent: Any) -> Any:
        """Return the latent state of the current step."""
        return self.base.state_of(latent.base)

    def to_dict(self) -> dict[str, Any]:
        """Return the world as JSON types. `larl.worlds.from_dict` reads them."""
        return super().to_dict() | {"base": self.base.to_dict()}
