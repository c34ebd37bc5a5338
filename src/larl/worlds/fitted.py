"""The world that a diagnosis fitted to a log."""

from typing import TYPE_CHECKING

from larl._core.validation import InvalidValue
from larl.worlds.base import World

if TYPE_CHECKING:
    from larl.diagnosis import Diagnosis


def from_log(diagnosis: "Diagnosis", draw: int | None = None) -> World:
    """Return the world that `larl.diagnose` fitted to a log, to simulate in. It is `diagnosis.world(draw)`.

    Parameters
    ----------
    diagnosis : Diagnosis
        The diagnosis of the log.
    draw : int, 0 to 99, optional
        Number of a draw from the posterior distribution. By default the most probable parameters.

    Returns
    -------
    World
        A `larl.LatentAR` with a noise for each arm, or a `larl.worlds.LatentGLM` for binary rewards and counts. Its
        means are constant (β = 0) if the most probable order is 0.

    Raises
    ------
    InvalidValue
        If nothing was fitted, because there is too little data, or if the log has one arm.

    Examples
    --------
    >>> import larl, numpy as np, pandas as pd
    >>> rewards = np.random.default_rng(0).integers(2, size=60)
    >>> log = pd.DataFrame({"t": range(60), "a": [0, 1] * 30, "r": rewards})
    >>> world = larl.worlds.from_log(larl.diagnose(log, replay=False, progress=False))
    >>> world.arms, world.family
    (2, 'bernoulli')
    """
    if not callable(getattr(diagnosis, "world", None)):
        raise InvalidValue("from_log", "diagnosis", diagnosis, "the result of larl.diagnose(log)")
    return diagnosis.world(draw)
