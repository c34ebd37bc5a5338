"""`learn_prior`: what earlier units show about a new one, as a prior of Auto."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from larl._core.progress import Progress
from larl._core.validation import InvalidValue, boolean, integers, one_of
from larl.live.base import arm_names
from larl.logs.steps import LogSteps, load_steps
from larl.policies.auto.layout import BINARY, CONTINUOUS
from larl.policies.auto.parameters import prior_of
from larl.policies.auto.prior import MAX_ORDER, Prior, PriorComponent
from larl.priors.population import FIT_STEPS, ModelFit, default_prior, fit_model
from larl.priors.summaries import summarise_units
from larl.priors.units import Floats, Ints, Unit, make_unit, model_kind, reward_model

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

ORDERS = (1, 2, 3, 4, 6, 8, 10)
MIN_WEIGHT = 0.1  # of a component
SCALE_UNITS, SCALE_VARIANCE = 2.0, 0.5  # prior of the variance of log σ² between units
MAX_ERRORS = 40.0  # rewards that the prior of σ² can be worth


def learn_prior(
    logs: "IntoFrame | str | Path | Sequence[IntoFrame | str | Path]",
    *,
    arms: Sequence[str] | None = None,
    time: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    unit: "str | Literal[False] | None" = None,
    day_first: bool | None = None,
    rewards: str = "detect",
    orders: Sequence[int] = ORDERS,
    progress: bool = False,
) -> Prior:
    """Return the prior of a new unit that logs of earlier units imply, for ``larl.Auto(prior=…)``.

    Any policy may have made the decisions. For each order of the latent state, a hierarchical normal model describes
    how the parameters of Auto differ between units: see docs/prior.md. The orders that explain the logs best become
    the components of the prior.

    Parameters
    ----------
    logs : table, str, Path, or a sequence of them
        Logs with one row per decision, as for ``larl.diagnose``: tables of pandas, polars, pyarrow or another library
        that narwhals supports, or paths of CSV (also gzipped) or Parquet files. A log can have one or several units.
    arms : sequence of str, optional
        Names of all arms in the order of the policy. By default those of the logs, in numerical or alphabetical order.
    time, action, reward : str, optional
        Names of the columns; by default common names are found, as for ``larl.Agent.from_log``.
    unit : str or False, optional
        Name of the unit's column. By default `u`, `unit`, `user`, or an `id` that repeats. False: each log is one unit.
    day_first : bool, optional
        Whether dates such as 03/04/2026 have the day first. Needed only if the column is ambiguous.
    rewards : "detect", "continuous" or "binary", default "detect"
        Model of the rewards. ``"detect"``: binary if all rewards are 0 or 1.
    orders : sequence of int, 1 to 50, increasing, default (1, 2, 3, 4, 6, 8, 10)
        Orders of the latent state that it considers.
    progress : bool, default False
        Whether to show progress.

    Returns
    -------
    Prior

    Raises
    ------
    InvalidValue
        If an argument is not usable, a cell cannot be read, or no unit has two rewards.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.paper(1)
    >>> result = larl.compare({"random": larl.Random()}, world, horizon=100, trials=5, seed=1)
    >>> pilot = result.data[["arm", "reward"]].squeeze().to_dataframe().reset_index()
    >>> prior = larl.learn_prior(pilot, unit="trial", orders=(1, 2))
    >>> prior.units, prior.rewards
    (5, 'continuous')
    >>> agent = larl.Agent(larl.Auto(prior=prior), arms=prior.arms)
    """
    owner = "learn_prior"
    orders = integers(1)(owner, "orders", orders)
    if max(orders) > MAX_ORDER:
        raise InvalidValue(owner, "orders", orders, f"whole numbers from 1 to {MAX_ORDER}, in rising order")
    one_of("detect", "continuous", "binary")(owner, "rewards", rewards)
    boolean()(owner, "progress", progress)
    columns = {"time": time, "action": action, "reward": reward, "unit": unit}
    names = None if arms is None else arm_names(owner, arms)
    found = _read_logs(logs, columns, names, day_first, owner)
    names, model, histories = _collect_units(found, rewards, owner)
    with Progress(len(histories) + len(orders) * FIT_STEPS, progress) as bar:
        units = _make_units(histories, len(names), model, bar.finish_steps, owner)
        fits = fit_orders(units, len(names), model, orders, bar.finish_steps)
    chosen = weigh(fits)
    return Prior(
        arms=names,
        rewards="binary" if model == BINARY else "continuous",
        units=len(units),
        steps=sum(each.rewards for each in units),
        components=tuple(to_component(fit, weight) for fit, weight in chosen),
        unit_summaries=summarise_units(units, chosen[0][0]),
    )


def _read_logs(
    logs: Any, columns: dict[str, Any], arms: Sequence[str] | None, day_first: bool | None, owner: str
) -> list[LogSteps]:
    """Return the steps of every log."""
    given = list(logs) if isinstance(logs, list | tuple) else [logs]
    if not given:
        raise InvalidValue(owner, "logs", logs, "one or more logs")
    return [load_steps(each, columns, arms=arms, context=(), day_first=day_first, owner=owner) for each in given]


class RewardedSteps(NamedTuple):
    """The steps of a unit: the number of the arm, −1 for none, and the reward, nan if it is missing."""

    name: str
    arm: Ints
    reward: Floats


def _collect_units(logs: list[LogSteps], rewards: str, owner: str) -> tuple[tuple[str, ...], int, list[RewardedSteps]]:
    """Return the names of the arms, the observation model, and the steps of each unit."""
    names = tuple(dict.fromkeys(arm for log in logs for arm in log.arms))
    if any(log.arms != logs[0].arms for log in logs):
        are_numbers = all(name.removeprefix("-").isdigit() for name in names)
        names = tuple(sorted(names, key=int if are_numbers else None))
    if len(names) < 2:
        raise InvalidValue(owner, "arms", list(names), "two or more different actions in the logs, or arms=[…]")
    number = {name: i for i, name in enumerate(names)}
    played: dict[tuple[int, str], list[int]] = {}
    rewarded: dict[tuple[int, str], list[float]] = {}
    for i, log in enumerate(logs):
        for step in log.steps:
            place = (i, step.unit)
            played.setdefault(place, []).append(-1 if step.arm is None else number[step.arm])
            rewarded.setdefault(place, []).append(math.nan if step.reward is None else step.reward)
    values = [np.array(each) for each in rewarded.values()]
    model = {"continuous": CONTINUOUS, "binary": BINARY}.get(rewards, reward_model(values))
    if model == BINARY:
        values = [np.where(np.isnan(each), np.nan, each > 0.5) for each in values]
    labels = [unit or f"log {i + 1}" for i, unit in played]
    arms = [np.array(arm, dtype=np.int64) for arm in played.values()]
    return names, model, [RewardedSteps(*each) for each in zip(labels, arms, values, strict=True)]


def _make_units(
    histories: list[RewardedSteps], arms: int, model: int, advance: Callable[[], None], owner: str
) -> list[Unit]:
    """Return the units that have two rewards or more; `advance` is called after each."""
    units = []
    for each in histories:
        unit = make_unit(*each, arms, model)
        advance()
        if unit is not None:
            units.append(unit)
    if not units:
        raise InvalidValue(owner, "logs", f"{len(histories)} units", "logs in which a unit has two or more rewards")
    return units


def fit_orders(
    units: Sequence[Unit], arms: int, model: int, orders: Sequence[int], advance: Callable[[], None]
) -> list[ModelFit]:
    """Return the fit of each order; one start of a fit is that of the order before."""
    fits: list[ModelFit] = []
    for order in orders:
        fits.append(fit_model(model_kind(arms, order, model), list(units), fits[-1] if fits else None, advance))
    return fits


def weigh(fits: Sequence[ModelFit]) -> list[tuple[ModelFit, float]]:
    """Return fits of which a prior is made and their probabilities, the most probable first.

    These are the two most probable orders and the largest one, which contains all others. Each has a minimum
    probability: after few units the evidence for an order is uncertain, and Auto drops a wrong one soon.
    """
    score = np.array([fit.log_evidence + prior_of(fit.kind).log_weight for fit in fits])
    chosen = list(dict.fromkeys([*np.argsort(-score)[:2].tolist(), int(np.argmax([fit.kind.p for fit in fits]))]))
    weight = np.exp(score[chosen] - score.max())
    weight = np.maximum(weight / weight.sum(), MIN_WEIGHT)
    order = np.argsort(-weight)
    return [(fits[chosen[i]], float(weight[i] / weight.sum())) for i in order.tolist()]


def to_component(fit: ModelFit, weight: float) -> PriorComponent:
    """Return the prior of a fitted model."""
    m0, sd0 = default_prior(fit.kind)
    population, log_variance = fit.population, np.log(np.maximum(fit.shock_variance, 1e-190))
    squares = float(((log_variance - log_variance.mean()) ** 2).sum())
    between = (SCALE_UNITS * SCALE_VARIANCE + squares) / (SCALE_UNITS + log_variance.size - 1)
    is_binary = fit.kind.rewards == BINARY
    return PriorComponent(
        order=fit.kind.p,
        weight=weight,
        mean=tuple((m0 + sd0 * population.mean).tolist()),
        mean_covariance=tuple(map(tuple, (population.mean_cov * np.outer(sd0, sd0)).tolist())),
        spread=tuple((sd0 * np.sqrt(population.spread)).tolist()),
        level=tuple(fit.level.tolist()),
        same_sign=tuple(fit.same_sign.tolist()),
        errors=0.0 if is_binary else min(2.0 / between, MAX_ERRORS),
        shock_sd=0.0 if is_binary else math.exp(0.5 * float(log_variance.mean())),
    )
