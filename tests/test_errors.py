"""Public functions refuse invalid arguments with one short line: field, value and accepted values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import larl
from larl import theory, worlds
from larl._core.validation import InvalidValue, short
from larl.policies import _state_memory as memory
from larl.policies import from_dict, from_json
from larl.simulation import plots, study, tables
from larl.statespace.kalman import filter_path
from larl.statespace.steady_state import steady_state
from larl.worlds import variants

WORLD = worlds.paper(1)
POLICIES = {"UCB": larl.UCB(), "random": larl.Random()}
BAD: list[Any] = [
    None,
    "x",
    [WORLD],
    [larl.UCB()],
    {"a": 3},
    {},
    {3: WORLD},
    {3: larl.UCB()},
    {"a": larl.UCB},
    np.ones((100, 3)),
    pd.DataFrame({"a": range(1000)}),
    larl.UCB(),
    larl.UCB,
    larl.LatentAR,
    3.5,
]


def result() -> larl.Result:
    return larl.compare(POLICIES, WORLD, horizon=5, trials=3, progress=False)


def compared(**changes: Any) -> Any:
    given: dict[str, Any] = {"policies": POLICIES, "world": WORLD, "horizon": 1, "trials": 1, "progress": False}
    return larl.compare(**given | changes)


# Name: a function of one value, and the indices of the values in BAD that it accepts.
CALLS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "compare policies": (lambda x: compared(policies=x), ()),
    "compare world": (lambda x: compared(world=x), ()),
    "compare horizon": (lambda x: compared(horizon=x), ()),
    "compare trials": (lambda x: compared(trials=x), ()),
    "compare seed": (lambda x: compared(seed=x), ()),
    "compare keep": (lambda x: compared(keep=x), ()),
    "compare units": (lambda x: compared(units=x), (0,)),
    "compare pooling": (lambda x: compared(pooling=x), ()),
    "compare threads": (lambda x: compared(threads=x), (0,)),
    "compare progress": (lambda x: compared(progress=x), (0,)),
    "join": (larl.join, ()),
    "join one": (lambda x: larl.join([x]), ()),
    "load": (larl.load, ()),
    "Result": (larl.Result, ()),
    "total": (lambda x: result().total(x), ()),
    "summary": (lambda x: result().summary(x), ()),
    "reference": (lambda x: result().summary(reference=x), (0,)),
    "wins": (lambda x: result().wins(x), ()),
    "curves": (lambda x: result().curves(x), ()),
    "band": (lambda x: result().plot_regret(band=x), ()),
    "width": (lambda x: result().plot_regret(width=x), (0, 14)),
    "palette": (lambda x: result().plot_regret(palette=x), ()),
    "plot_regret": (plots.plot_regret, ()),
    "plot_wins": (plots.plot_wins, ()),
    "plot_lookback": (plots.plot_lookback, ()),
    "plot_growth": (plots.plot_growth, ()),
    "plot_heatmap": (plots.plot_heatmap, ()),
    "plot_line": (plots.plot_line, ()),
    "regret_floor": (theory.regret_floor, ()),
    "regret_lower_bound": (theory.regret_lower_bound, ()),
    "greedy_regret": (theory.greedy_regret, ()),
    "random_regret": (theory.random_regret, ()),
    "predictability": (theory.predictability, ()),
    "noise_scale": (theory.noise_scale, ()),
    "steady_start": (theory.steady_start, ()),
    "reward_parameters": (lambda x: theory.reward_parameters(x, 1), ()),
    "reward_parameters s": (lambda x: theory.reward_parameters(WORLD, x), ()),
    "bias_row": (lambda x: theory.bias_row(x, 1), ()),
    "context_bound": (lambda x: theory.context_bound(x, 1, 0.1, 10), ()),
    "context_bound s": (lambda x: theory.context_bound(WORLD, x, 0.1, 10), ()),
    "confidence_radius": (lambda x: theory.confidence_radius(x, 1, 3, 10, squared_bias=1.0), ()),
    "regret_bound": (lambda x: theory.regret_bound(x, 1, 10), ()),
    "regret_bound ridge": (lambda x: theory.regret_bound(theory.steady_start(WORLD), 1, 10, ridge=x), (14,)),
    "expected_best_mean": (lambda x: theory.expected_best_mean(x, [1.0, 2.0], 0.0, 1.0), ()),
    "decompose": (lambda x: theory.decompose(x, WORLD), ()),
    "certificate": (lambda x: theory.certificate(x, WORLD), ()),
    "steady_state": (steady_state, ()),
    "filter_path": (lambda x: filter_path(x, [0], [1.0]), ()),
    "paper": (worlds.paper, ()),
    "random": (lambda x: worlds.random(x, 2, 0), ()),
    "random_vector": (lambda x: worlds.random_vector(x, 1, 2, 0), ()),
    "gammas": (lambda x: larl.LatentAR(x, [1, 1], [0, 0]), ()),
    "start": (lambda x: larl.LatentAR([0.9], [1, 1], [0, 0], start=x), ()),
    "LatentVAR": (lambda x: larl.LatentVAR(x, [[1], [1]], [0, 0]), ()),
    "cov_z": (lambda x: larl.LatentVAR([[[0.9]]], [[1], [1]], [0, 0], cov_z=x), (0,)),
    "path": (WORLD.path, ()),
    "means": (lambda x: WORLD.means(["x", x]), ()),
    "Simulator": (lambda x: larl.Simulator(x, 0, 0), ()),
    "Simulator.reward": (lambda x: larl.Simulator(WORLD, 0, 0).reward(x), ()),
    "variants.from_dict": (variants.from_dict, ()),
    "LatentAR.from_dict": (larl.LatentAR.from_dict, ()),
    "policies.from_dict": (from_dict, ()),
    "policies.from_json": (from_json, ()),
    "HeavyTails": (variants.HeavyTails, ()),
    "Burden": (lambda x: variants.Burden(WORLD, x), ()),
    "Contextual": (lambda x: variants.Contextual(WORLD, x), ()),
    "read_study": (study.read_study, ()),
    "cluster": (lambda x: study.Study({"w": WORLD}, POLICIES, 1, 1).run(cluster=x), (0,)),
    "units": (tables.units, ()),
    "heatmap": (lambda x: tables.heatmap(result(), x, x), ()),
    "latex": (tables.latex, ()),
    "check_axes": (lambda x: tables.check_axes(x, {}), ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_invalid_values_are_refused_in_one_short_line(name):
    call, accepted = CALLS[name]
    for index, value in enumerate(BAD):
        if index in accepted:
            call(value)
            continue
        with pytest.raises(InvalidValue) as refusal:
            call(value)
        text = str(refusal.value)
        assert "accepted: " in text
        assert len(text) < 700, text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: compared(world=[WORLD, WORLD]), "compare: world = [LatentAR"),
        (lambda: compared(world=[WORLD, WORLD]), "a mapping from names to worlds"),
        (lambda: compared(world=larl.UCB()), f"compare: world = {larl.UCB()}"),
        (lambda: compared(world=np.ones((100, 3))), "compare: world = <ndarray of shape (100, 3)>"),
        (lambda: compared(policies=[larl.UCB()]), "mapping from names to policies, such as {'LARL': larl.LARL(s=5)"),
        (lambda: compared(policies={"UCB": larl.UCB}), "UCB is the class, write UCB(…)"),
        (lambda: compared(world=larl.LatentAR), "LatentAR is the class, write LatentAR(…)"),
        (
            lambda: theory.regret_floor(larl.UCB()),
            f"regret_floor: world = {larl.UCB()} is not usable; accepted: a larl.",
        ),
        (lambda: larl.Agent.load(5), "Agent.load: path = 5 is not usable; accepted: a path"),
    ],
)
def test_message_says_what_to_write(call, part):
    with pytest.raises(InvalidValue) as refusal:
        call()
    assert part in str(refusal.value)


def test_message_abbreviates_long_value_and_error_keeps_it():
    long = list(range(10_000))
    error = InvalidValue("it", "field", long, "less")
    assert len(str(error)) < 200
    assert error.value is long
    assert short("x" * 10_000).count("x") < 400
    assert short([1.5, "a"]) == "[1.5, 'a']"
    assert short(np.float64(2.0)) == "2.0"


@pytest.mark.parametrize(("wrong", "right"), [("Larl", "LARL"), ("compar", "compare"), ("LatentAr", "LatentAR")])
def test_misspelt_name_gets_suggestion(wrong, right):
    with pytest.raises(AttributeError, match=f"no attribute '{wrong}'; did you mean '{right}'"):
        getattr(larl, wrong)
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqq'$"):
        _ = larl.qqqqq


def test_every_public_name_can_be_loaded():
    for name in dir(larl):
        assert getattr(larl, name) is not None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (larl.LARL(s=10**9), "s"),
        (larl.LARL(s=10**5), "s"),
        (larl.ARUCB(10**9), "order"),
        (larl.SlidingWindowUCB(10**12), "window"),
        (larl.SlidingWindowLinUCB(10**6, window=10), "s"),
        (larl.DiscountedLinUCB(10**6, 0.9), "s"),
        (larl.AdaptiveLARL(10**6), "s_max"),
        (larl.ChangePointThompson(memory=10**12), "memory"),
    ],
)
def test_state_that_exceeds_memory_is_refused(spec, field):
    with pytest.raises(InvalidValue, match=rf"{type(spec).__name__}: {field} = \d+ .* needs about [\d.,]+ [TPE]B"):
        compared(policies={"it": spec})


def test_estimated_memory_equals_size_of_state():
    for n in (5_000, 20_000):
        window = larl.SlidingWindowUCB(n)
        true = memory.state_bytes(window.init(2, horizon=5))
        estimate = memory.extrapolate_size(lambda n: memory.state_bytes(larl.SlidingWindowUCB(n).init(2, horizon=5)), n)
        assert estimate == pytest.approx(true, rel=1e-9)
    true = memory.state_bytes(larl.LARL(400).init(2, horizon=5))
    estimate = memory.extrapolate_size(lambda s: memory.state_bytes(larl.LARL(s).init(2, horizon=5)), 400)
    assert estimate == pytest.approx(true, rel=1e-9)
    assert memory.extrapolate_size(lambda n: 2 ** (n // 8), 10**6) is None  # not a polynomial: no estimate


def test_large_state_that_fits_is_accepted():
    compared(policies={"it": larl.SlidingWindowUCB(100_000)})


def test_memory_error_says_how_to_use_less(monkeypatch):
    with pytest.raises(MemoryError, match=r"not enough memory .*; fewer trials, or keep='summary', need less"):
        compared(horizon=10**6, trials=10**9)

    def full(*_: Any) -> Any:
        raise MemoryError("Unable to allocate 3 GiB")

    monkeypatch.setattr("larl.simulation.compare._StepRecorder", full)
    with pytest.raises(MemoryError, match=r"not enough memory \(Unable to allocate 3 GiB\); fewer trials"):
        compared()
