"""Choose the model of the rewards: continuous (normal noise), binary, or counts."""

from typing import NamedTuple

import numpy as np

from larl._core.validation import InvalidValue
from larl.diagnosis.glm import BinaryModel, CountModel
from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.model import Model

MODELS: dict[str, type[Model]] = {"continuous": Model, "binary": BinaryModel, "count": CountModel}
DESCRIPTIONS = {
    "continuous": "continuous: normal around a mean that is linear in the state",
    "binary": "binary: Bernoulli, with log odds that are linear in the state",
    "count": "counts: negative binomial (Poisson in the limit), with a log-mean that is linear in the state",
}
MAX_COUNT = 1_000_000
MIN_COUNTS = 3  # different values
MAX_SHARE_OF_LARGEST = 0.1  # of the rewards; a larger share at the largest value indicates the end of a scale
MAX_MEAN = 0.5  # in units of the largest value; counts of which some are 0 have a long right tail
MIN_DISPERSION = 0.7  # variance of an arm's rewards in units of their mean; 1 for Poisson


class RewardModel(NamedTuple):
    """The model of the rewards."""

    kind: str  # "continuous", "binary" or "count"
    reason: str

    @property
    def model_class(self) -> type[Model]:
        """The class of the latent AR bandit that is fitted."""
        return MODELS[self.kind]

    @property
    def note(self) -> str:
        """Which model was used, and why."""
        return f"Rewards are modelled as {DESCRIPTIONS[self.kind]}. Reason: {self.reason}."


CONTINUOUS = RewardModel("continuous", "no other model was chosen")


def choose_reward_model(log: Log, requested: str | None) -> RewardModel:
    """Return the requested model, or the one that the rewards indicate; InvalidValue if they cannot have it."""
    reward = log.observed_rewards
    if requested == "binary" and not _is_binary(reward):
        raise InvalidValue(
            "diagnose", "rewards", requested, f"'binary' only if all rewards are 0 or 1; {_find(reward)}"
        )
    if requested == "count" and not _is_count(reward):
        accepted = f"'count' only if all rewards are whole numbers from 0 to {MAX_COUNT:,}; {_find(reward)}"
        raise InvalidValue("diagnose", "rewards", requested, accepted)
    if log.adjusted:
        return RewardModel(
            "continuous", "an effect was removed from them, after which they are no longer whole numbers"
        )
    if requested is not None:
        return RewardModel(requested, f"rewards = {requested!r} was given")
    return _infer(log)


def _infer(log: Log) -> RewardModel:
    """Return the model that the rewards indicate."""
    reward = log.reward
    if _is_binary(reward):
        return RewardModel("binary", "all of them are 0 or 1")
    if not _is_whole(reward):
        zeros = float(np.mean(reward == 0.0))
        if reward.min() == 0.0 and zeros >= 0.05:
            return RewardModel("continuous", f"they are not whole numbers ({100 * zeros:.0f}% are 0)")
        return RewardModel("continuous", "they are not whole numbers")
    if reward.min() < 0.0:
        return RewardModel("continuous", "some are negative")
    if reward.max() > MAX_COUNT:
        return RewardModel("continuous", f"some are above {MAX_COUNT:,}")
    if reward.min() > 0.0 or np.unique(reward).size < MIN_COUNTS:
        return RewardModel("continuous", "they look like a scale: whole numbers without 0, or with few values")
    if float(np.mean(reward == reward.max())) > MAX_SHARE_OF_LARGEST or reward.mean() > MAX_MEAN * reward.max():
        return RewardModel("continuous", "they look like a bounded scale: many are at or near the largest value")
    if _dispersion(log) < MIN_DISPERSION:
        return RewardModel("continuous", "they look like a scale: their variance is below that of counts")
    return RewardModel("count", "all of them are whole numbers from 0 on, with the variance of counts")


def _dispersion(log: Log) -> float:
    """Return the variance of rewards around the mean of their arm, in units of the mean."""
    mean = np.bincount(log.arm, log.reward, log.arms) / np.maximum(log.plays, 1)
    squares = float(np.sum((log.reward - mean[log.arm]) ** 2))
    return squares / max(log.rows - log.arms, 1) / float(log.reward.mean())


def _is_whole(reward: Floats) -> bool:
    """Whether all rewards are whole numbers."""
    return bool(np.all(reward == np.floor(reward)))


def _is_binary(reward: Floats) -> bool:
    """Whether all rewards are 0 or 1."""
    return bool(np.all((reward == 0.0) | (reward == 1.0)))


def _is_count(reward: Floats) -> bool:
    """Whether all rewards are counts that can be modelled."""
    return _is_whole(reward) and bool(reward.min() >= 0.0 and reward.max() <= MAX_COUNT)


def _find(reward: Floats) -> str:
    """Return a sentence about the range of the rewards."""
    return f"here they are from {reward.min():.4g} to {reward.max():.4g}"
