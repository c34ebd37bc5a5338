"""Replays: the recommended policy is the simulated one, and its regret agrees with the page."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis import replay as replays
from larl.diagnosis.answers import format_interval
from larl.diagnosis.estimates import PosteriorDraw
from larl.diagnosis.page import render_page
from larl.statespace.smoother import ARParameters
from tests.diagnosis.logs import simulate_logs

RATINGS = larl.LatentAR(gammas=[0.9], beta=[-0.6, 0.6], mu=[6.0, 6.3], noise="common")  # between 0 and 10


@pytest.fixture(scope="module", autouse=True)
def _small_replays():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"WORLDS": 6, "MAX_TRIALS": 10, "AUTO_STEP_BUDGET": 1200, "MAX_HORIZON": 150}.items():
            patch.setattr(replays, name, value)
        yield


def as_ratings(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(r=frame.r.round().clip(0, 10))


@pytest.fixture(scope="module")
def ratings() -> pd.DataFrame:
    return as_ratings(next(simulate_logs(RATINGS, 300, 1, seed=4)))


@pytest.fixture(scope="module")
def diagnosis(ratings) -> larl.Diagnosis:
    return larl.diagnose(ratings, progress=False)


def mean_regret(policies: dict, world, horizon: int, trials: int = 40) -> dict[str, float]:
    """Return each policy's regret per step."""
    total = larl.compare(policies, world, horizon=horizon, trials=trials, seed=9, progress=False).total() / horizon
    return {name: float(total.sel(policy=name).mean()) for name in policies}


def test_regret_of_the_recommended_policy_agrees_with_the_page(diagnosis):
    # Means of 40 trials in the world of the log. The page has an interval over fitted worlds. A tenth of the regret of
    # random choices is allowed for the rounding of ratings and the noise of trials.
    recommended = eval(diagnosis.replay.best, {"larl": larl})
    policies = {"best": recommended, "random": larl.Random(), "plain UCB": larl.UCB()}
    actual = mean_regret(policies, RATINGS, diagnosis.replay.horizon)
    reported = diagnosis.replay.regret_of(diagnosis.replay.best)
    assert actual["best"] < 0.7 * actual["random"]
    slack = 0.1 * actual["random"]
    assert reported.low - slack < actual["best"] < reported.high + slack
    # Plain UCB has a bonus of one unit of the reward, at an offset of 6. It must not be recommended.
    assert actual["plain UCB"] > 1.3 * actual["best"]
    assert diagnosis.log.rows == 300


def test_printed_policies_are_the_simulated_ones_and_scale_invariant(diagnosis):
    lookback = replays.predicted_lookback(diagnosis.estimates.draws, diagnosis.log.rows)
    specs = [*replays.candidates(2, lookback), larl.Auto()]
    assert {replays.policy_expression(spec) for spec in specs} == {*diagnosis.replay.ranked}
    for spec in specs:
        again = eval(replays.policy_expression(spec), {"larl": larl})
        assert again == spec
        assert type(again) is type(spec)
        assert getattr(spec, "standardise", True)
    assert replays.policy_expression(larl.DiscountedUCB(0.98, standardise=True)) == (
        "larl.DiscountedUCB(discount=0.98, standardise=True)"
    )
    assert diagnosis.replay.best in diagnosis.answers[3].verdict
    assert diagnosis.replay.best in diagnosis.answers[4].answer


def test_recommendation_is_invariant_to_unit_and_offset(ratings, diagnosis):
    other = larl.diagnose(ratings.assign(r=10 * ratings.r + 50), progress=False)
    assert other.replay.best == diagnosis.replay.best
    assert other.replay.best_s == diagnosis.replay.best_s
    for name in diagnosis.replay.regret:
        assert other.replay.saving_of(name).value == pytest.approx(
            10 * diagnosis.replay.saving_of(name).value, rel=0.03
        )


def test_fitted_worlds_have_the_units_of_the_log(ratings, diagnosis):
    worlds = [replays.fitted_world(draw) for draw in diagnosis.estimates.draws]
    assert abs(np.mean([world.mu for world in worlds]) - ratings.r.mean()) < 0.5
    sd = [np.sqrt(np.mean(np.square(world.beta)) * world.stationary_var + np.mean(world.sd**2)) for world in worlds]
    assert np.mean(sd) == pytest.approx(ratings.r.std(), rel=0.2)


def draw_of_paper_world(sigma_r: float) -> PosteriorDraw:
    """Return the paper's first world with another noise as a posterior draw."""
    shock = 1.0 - 0.9**2  # z has variance 1
    parameters = ARParameters(
        gammas=np.array([[0.9]]),
        acf=np.array([[1.0, 0.9]]),
        shock=np.array([shock]),
        mu=np.zeros((1, 2)),
        beta=np.array([[-1.0, 1.0]]) / np.sqrt(shock),
        variance=np.full((1, 2), sigma_r**2),
        level=np.zeros(1),
        start=np.ones(1),
    )
    empty = np.zeros(0)
    return PosteriorDraw(
        order=1,
        parameters=parameters,
        state_share=0.5,
        forecasts=empty,
        fixed_arm_regret=0.0,
        switch_share=0.0,
        log_regret=1.8,
        z=empty,
        variance=empty,
    )


def test_best_s_minimises_regret_and_may_exceed_the_order(monkeypatch):
    # k = 1 with noise of sd 4 over 1,000 steps: a longer context averages the noise, so s > k is better. In 100 trials
    # of one world s = 1 has 0.15 more regret per step than s = 5, five standard errors of the paired difference.
    from larl._core.progress import Progress

    for name, value in {"MAX_TRIALS": 100, "STEP_BUDGET": 100_000, "MAX_HORIZON": 1000, "MAX_ARMS": 1}.items():
        monkeypatch.setattr(replays, name, value)
    result = replays.replay_policies([draw_of_paper_world(4.0)], 1, 1000, seed=0, threads=None, bar=Progress(1, False))
    assert result.best_s >= 3
    assert result.regret_of(result.lookbacks[5]).value < result.regret_of(result.lookbacks[1]).value
    assert 1 not in result.good_s


def test_answer_distinguishes_s_from_the_order(diagnosis):
    replay, text = diagnosis.replay, diagnosis.answers[3].answer
    assert f"Of LARL, {replay.lookbacks[replay.best_s]} has the smallest regret" in text
    assert f"most probable order of the hidden process is k = {diagnosis.estimates.best}" in text
    not_replayed = dataclasses.replace(diagnosis, replay=None)
    assert "s is chosen by replays" in not_replayed.answers[3].answer
    assert "s = " not in not_replayed.answers[3].verdict


def test_text_and_table_have_the_same_regret_of_the_log(diagnosis):
    logged = format_interval(replays.world_interval(diagnosis.replay.log_regret))
    assert f"own choices had a regret of {logged} per step" in diagnosis.answers[4].answer
    assert f"<td>the log&#x27;s own choices</td><td>{logged}</td>" in render_page(diagnosis)


@pytest.mark.parametrize("best", ["Auto", "LARL"])
def test_every_recommended_policy_is_the_expression_that_was_replayed(diagnosis, best):
    replay = diagnosis.replay
    larl_name = replay.lookbacks[replay.best_s]
    first = larl_name if best == "LARL" else "larl.Auto()"
    regret = dict(replay.regret) | {first: np.full_like(replay.log_regret, -1.0)}
    answer = dataclasses.replace(diagnosis, replay=dataclasses.replace(replay, regret=regret)).answers[3]
    for text in (answer.verdict, answer.answer):
        shown = re.findall(r"larl\.\w+\([^)]*\)", text)
        assert {first, larl_name} <= set(shown) <= set(replay.regret)
        assert [replays.policy_expression(eval(name, {"larl": larl})) for name in shown] == shown
    assert answer.verdict == (first if best == "LARL" else f"{first}; of LARL: {larl_name}")


def test_representations_are_short(diagnosis):
    parts = [
        diagnosis,
        diagnosis.log,
        diagnosis.fitted,
        diagnosis.drift,
        diagnosis.estimates,
        diagnosis.replay,
        diagnosis.periods,
    ]
    parts += [diagnosis.shared_drift, diagnosis.estimates.draws[0], diagnosis.estimates.draws[0].parameters]
    parts += [diagnosis.estimates.fits[1], diagnosis.estimates.fits[1].model, diagnosis.answers[0]]
    for part in parts:
        assert len(repr(part)) < 600, type(part)
    assert repr(diagnosis).startswith("<Diagnosis of 300 rewards of 1 unit and 2 arms; drift: yes, best: larl.")


def test_candidates_are_ranked_by_mean_regret():
    regret = {"a": np.array([1.0, 1.0, 1.0]), "b": np.array([0.0, 0.0, 2.9]), replays.KALMAN: np.zeros(3)}
    result = replays.ReplayResult(regret, np.ones(3) * 2, {}, 10, ())
    assert result.ranked == ["b", "a"]  # by the mean, not by the median
    assert result.regret_of("b").value < result.regret_of("a").value
