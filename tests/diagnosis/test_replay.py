"""Replays: what is recommended is what was replayed, in the log's units, and keeps what the page says."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import larl
from larl.diagnosis import replay as replays
from larl.diagnosis.estimates import Draw
from larl.diagnosis.fit import Setting
from tests.diagnosis.logs import logs

RATINGS = larl.LatentAR(gammas=[0.9], beta=[-0.6, 0.6], mu=[6.0, 6.3], noise="common")  # between 0 and 10


@pytest.fixture(scope="module", autouse=True)
def _few():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"WORLDS": 6, "TRIALS": 10, "AUTO_STEPS": 1200, "STEPS": 150}.items():
            patch.setattr(replays, name, value)
        yield


def as_ratings(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(r=frame.r.round().clip(0, 10))


@pytest.fixture(scope="module")
def ratings() -> pd.DataFrame:
    return as_ratings(next(logs(RATINGS, 300, 1, seed=4)))


@pytest.fixture(scope="module")
def found(ratings) -> larl.Diagnosis:
    return larl.diagnose(ratings, progress=False)


def lost(policies: dict, world, horizon: int, trials: int = 40) -> dict[str, float]:
    total = larl.compare(policies, world, horizon=horizon, trials=trials, seed=9, progress=False).total() / horizon
    return {name: float(total.sel(policy=name).mean()) for name in policies}


def test_the_recommended_policy_keeps_what_the_page_says_on_ratings(found):
    # Means of 40 trials in the world that made the log. The page gives an interval over worlds that fit the log; a
    # tenth of what random choices lose is allowed for the rounding of ratings and the luck of trials.
    recommended = eval(found.replay.best, {"larl": larl})
    policies = {"best": recommended, "random": larl.Random(), "plain UCB": larl.UCB()}
    real = lost(policies, RATINGS, found.replay.horizon)
    said = found.replay.lost(found.replay.best)
    assert real["best"] < 0.7 * real["random"]
    slack = 0.1 * real["random"]
    assert said.low - slack < real["best"] < said.high + slack
    # Plain UCB, whose bonus is one unit of the reward at an offset of 6, is what must not be recommended.
    assert real["plain UCB"] > 1.3 * real["best"]
    assert found.log.rows == 300


def test_every_printed_policy_is_the_one_that_was_replayed_and_free_of_units(found):
    specs = [*replays.candidates(2, found.estimates.best), larl.Auto()]
    assert {replays.code_of(spec) for spec in specs} == {*found.replay.ranked}
    for spec in specs:
        again = eval(replays.code_of(spec), {"larl": larl})
        assert again == spec
        assert type(again) is type(spec)
        assert getattr(spec, "standardise", True)
    assert replays.code_of(larl.DiscountedUCB(0.98, standardise=True)) == (
        "larl.DiscountedUCB(discount=0.98, standardise=True)"
    )
    assert found.replay.best in found.answers[3].verdict
    assert found.replay.best in found.answers[4].answer


def test_unit_and_offset_of_rewards_change_no_recommendation(ratings, found):
    other = larl.diagnose(ratings.assign(r=10 * ratings.r + 50), progress=False)
    assert other.replay.best == found.replay.best
    assert other.replay.best_s == found.replay.best_s
    for name in found.replay.regret:
        assert other.replay.saved(name).value == pytest.approx(10 * found.replay.saved(name).value, rel=0.03)


def test_worlds_pay_in_the_units_of_the_log(ratings, found):
    worlds = [replays.world_of(draw) for draw in found.estimates.draws]
    assert abs(np.mean([world.mu for world in worlds]) - ratings.r.mean()) < 0.5
    sd = [np.sqrt(np.mean(np.square(world.beta)) * world.stationary_var + np.mean(world.sd**2)) for world in worlds]
    assert np.mean(sd) == pytest.approx(ratings.r.std(), rel=0.2)


def world(sigma_r: float) -> Draw:
    """The paper's first world with another noise, as if it had been fitted."""
    shock = 1.0 - 0.9**2  # z has variance 1
    one = Setting(
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
    return Draw(1, one, 0.5, empty, 0.0, 0.0, 1.8, empty, empty)


def test_s_follows_the_regret_and_not_the_order(monkeypatch):
    # k = 1 with noise of sd 4 over 1,000 steps: a longer context averages noise out, so LARL wants s > k. In 100
    # trials of one world s = 1 loses 0.15 a step more than s = 5, five standard errors of the paired difference.
    from larl._core.progress import Progress

    for name, value in {"TRIALS": 100, "BUDGET": 100_000, "STEPS": 1000, "MANY_ARMS": 1}.items():
        monkeypatch.setattr(replays, name, value)
    found = replays.replay([world(4.0)], 1, 1000, 0, None, Progress(1, False))
    assert found.best_s >= 3
    assert found.lost(found.lookbacks[5]).value < found.lost(found.lookbacks[1]).value
    assert 1 not in found.good_s


def test_the_text_does_not_call_the_order_the_s_that_larl_needs(found):
    text = found.answers[3].answer
    assert f"LARL loses least with s = {found.replay.best_s}" in text
    assert f"k = {found.estimates.best} has the most evidence" in text
    not_replayed = dataclasses.replace(found, replay=None)
    assert "s is chosen by replays" in not_replayed.answers[3].answer
    assert "s = " not in not_replayed.answers[3].verdict


def test_representations_are_short(found):
    parts = [found, found.log, found.fitted, found.drift, found.estimates, found.replay, found.periods, found.together]
    parts += [found.estimates.draws[0], found.estimates.draws[0].setting, found.estimates.fits[1]]
    parts += [found.estimates.fits[1].model, found.answers[0]]
    for part in parts:
        assert len(repr(part)) < 600, type(part)
    assert repr(found).startswith("<Diagnosis of 300 rewards of 1 unit and 2 arms; drift: yes, best: larl.")


def test_the_best_is_the_first_of_the_table_and_the_least_of_all():
    regret = {"a": np.array([1.0, 1.0, 1.0]), "b": np.array([0.0, 0.0, 2.9]), replays.KALMAN: np.zeros(3)}
    replay = replays.Replay(regret, np.ones(3) * 2, {}, 10, ())
    assert replay.ranked == ["b", "a"]  # by the mean, not by the median
    assert replay.lost("b").value < replay.lost("a").value
