"""Worlds in which an assumption of the latent bandit fails: one world per file."""

from collections.abc import Mapping
from typing import Any

from larl._core.validation import InvalidValue, known_fields, mapping
from larl.worlds.base import LinearGaussianWorld, World
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_glm import LatentGLM
from larl.worlds.latent_markov import LatentMarkov
from larl.worlds.latent_var import LatentVAR
from larl.worlds.variants.burden import Burden as Burden
from larl.worlds.variants.change_points import ChangePoints as ChangePoints
from larl.worlds.variants.contextual import ContextState as ContextState
from larl.worlds.variants.contextual import Contextual as Contextual
from larl.worlds.variants.heavy_tails import HeavyTails as HeavyTails
from larl.worlds.variants.heterogeneous_units import HeterogeneousUnits as HeterogeneousUnits
from larl.worlds.variants.outliers import Outliers as Outliers
from larl.worlds.variants.parameter_change import ParameterChange as ParameterChange
from larl.worlds.variants.population import Population as Population
from larl.worlds.variants.recorded import Recorded as Recorded
from larl.worlds.variants.recorded import RecordedState as RecordedState
from larl.worlds.variants.seasonal import Seasonal as Seasonal
from larl.worlds.variants.wrapped import WrappedWorld as WrappedWorld

WORLD_CLASSES: dict[str, type[World]] = {
    world_class.__name__: world_class
    for world_class in (
        LatentAR,
        LatentVAR,
        LatentMarkov,
        LatentGLM,
        HeavyTails,
        Outliers,
        ParameterChange,
        Burden,
        Contextual,
        HeterogeneousUnits,
        Population,
        ChangePoints,
        Seasonal,
        Recorded,
    )
}


def from_dict(values: Mapping[str, Any], owner: str = "") -> World:
    """Return the world that `World.to_dict` wrote.

    Parameters
    ----------
    values : mapping
        The world's fields. ``"world"`` names its class, ``"LatentAR"`` by default. Fields left out have their defaults.
    owner : str, optional
        Name of the world in error messages.

    Returns
    -------
    World

    Raises
    ------
    InvalidValue
        If the class or a field is unknown, or a value is not accepted.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.HeavyTails(larl.worlds.paper(1), df=4.0)
    >>> larl.worlds.from_dict(world.to_dict()) == world
    True
    """
    name = mapping(owner or "world", "fields", values).get("world", "LatentAR")
    if not isinstance(name, str) or name not in WORLD_CLASSES:
        raise InvalidValue(owner or "world", "world", name, ", ".join(WORLD_CLASSES))
    world_class = WORLD_CLASSES[name]
    if issubclass(world_class, LinearGaussianWorld | LatentGLM | Population | Recorded):
        return world_class.from_dict(values, owner or name)
    given = known_fields(world_class, {key: value for key, value in values.items() if key != "world"}, owner or name)
    for part in ("base", "later"):
        if isinstance(given.get(part), Mapping):
            given[part] = from_dict(given[part], f"{owner or name}.{part}")
    return world_class(**given)
