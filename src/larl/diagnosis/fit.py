"""The latent AR bandit fitted to a log: maximum likelihood with weak priors, for every order k = 0 … 10, and its evidence.

Coordinates: partial autocorrelations as tanh(x), so that every fit is stable; and in units of the spread s_a of arm a's
rewards around their mean m_a: μ_a = m_a + s_a n, β_a = s_a b, sd_a = s_a eˡ. z has variance 1 in the long run here. With
several units each has its own level, N(0, τ²); what a unit starts from has the long run's covariance times κ².
The priors only keep what a short log says nothing about from running away: docs/diagnose.md lists them.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from larl.diagnosis._kernels import Floats, from_partials, innovations, smooth
from larl.diagnosis.log import Log

ORDERS = tuple(range(11))
NUMBERS = 100_000  # rows × coordinates of a fit, at most
MOST_ROWS, PIECE = 2500, 500
# Mean and sd a priori of each kind of coordinate; those of x_j are 0 and 1/√j.
MU, BETA, NOISE, LEVEL, START = (0.0, 1.0), (0.0, 1.0), (-0.3, 0.7), (-1.5, 1.0), (0.0, 1.0)
STEP = 1e-5  # of numerical derivatives
ENOUGH = 2e-3  # log-likelihood: a step that gains less is the last
MOST_STEPS = 40
LARGEST_X = 4.0  # tanh(4) = 0.9993


class Setting(NamedTuple):
    """Parameters as kernels take them, several at once along the leading axis."""

    gammas: Floats
    acf: Floats
    shock: Floats
    mu: Floats
    beta: Floats
    variance: Floats
    level: Floats
    start: Floats


@dataclass(frozen=True)
class Model:
    """A latent AR(order) bandit for a log; `tied` gives all arms the same β, order 0 gives none of them any."""

    log: Log
    order: int
    tied: bool = False

    @cached_property
    def centre(self) -> Floats:
        """m_a, the mean of each arm."""
        return np.bincount(self.log.arm, self.log.reward, self.log.arms) / np.maximum(self.log.plays, 1)

    @cached_property
    def spread(self) -> Floats:
        """s_a: the standard deviation of each arm, with four plays' worth of that of all arms mixed in."""
        away = (self.log.reward - self.centre[self.log.arm]) ** 2
        squares, plays = np.bincount(self.log.arm, away, self.log.arms), self.log.plays
        pooled = squares.sum() / max(self.log.rows - self.log.arms, 1)
        result: Floats = np.sqrt((squares + 4.0 * pooled) / (np.maximum(plays - 1, 0) + 4.0))
        return result

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each kind of coordinate is."""
        arms, moving = self.log.arms, self.order > 0
        sizes = {
            "partials": self.order, "mu": arms, "noise": arms, "beta": (1 if self.tied else arms) if moving else 0,
            "level": int(self.log.units > 1), "start": int(moving),
        }  # fmt: skip
        ends = np.cumsum(list(sizes.values()))
        return {name: slice(int(end - size), int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every coordinate."""
        mean, sd = np.zeros(self.places["start"].stop), np.ones(self.places["start"].stop)
        sd[self.places["partials"]] = 1.0 / np.sqrt(np.arange(1, self.order + 1))
        for name, (centre, spread) in {"mu": MU, "noise": NOISE, "beta": BETA, "level": LEVEL, "start": START}.items():
            mean[self.places[name]], sd[self.places[name]] = centre, spread
        return mean, sd

    def setting(self, theta: Floats) -> Setting:
        """Parameters at coordinates (several, one a row)."""
        count, k, arms = theta.shape[0], max(self.order, 1), self.log.arms
        part = {name: theta[:, place] for name, place in self.places.items()}
        partials = np.zeros((count, k))
        partials[:, : self.order] = np.tanh(np.clip(part["partials"], -LARGEST_X, LARGEST_X))
        gammas, acf, shock = np.zeros((count, k)), np.zeros((count, k + 1)), np.empty(count)
        for one in range(count):
            shock[one] = from_partials(partials[one], gammas[one], acf[one])
        beta = np.zeros((count, arms))
        if self.order:
            beta = part["beta"] * (self.spread.mean() if self.tied else self.spread)
            beta = np.ascontiguousarray(np.broadcast_to(beta, (count, arms)))
        level = (np.exp(part["level"][:, 0]) * self.spread.mean()) ** 2 if self.log.units > 1 else np.zeros(count)
        start = np.exp(2.0 * part["start"][:, 0]) if self.order else np.ones(count)
        mu = self.centre + self.spread * part["mu"]
        return Setting(gammas, acf, shock, mu, beta, (self.spread * np.exp(part["noise"])) ** 2, level, start)

    def predict(self, theta: Floats) -> tuple[Floats, Floats]:
        """Every reward's error of prediction and its variance, at each of several coordinates."""
        log = self.log
        error, size = np.empty((theta.shape[0], log.rows)), np.empty((theta.shape[0], log.rows))
        innovations(log.arm, log.gap, log.reward, *self.setting(theta), error, size)
        return error, size

    def log_likelihood(self, theta: Floats) -> float:
        """log p(rewards | actions, parameters)."""
        error, size = self.predict(theta[None])
        return float(-0.5 * np.sum(math.log(2.0 * math.pi) + np.log(size) + error**2 / size))

    def log_posterior(self, theta: Floats) -> float:
        """The log-likelihood and the priors' log-density."""
        mean, sd = self.prior
        prior = -0.5 * np.sum(((theta - mean) / sd) ** 2 + np.log(2.0 * math.pi * sd**2))
        return self.log_likelihood(theta) + float(prior)

    def slope(self, theta: Floats) -> tuple[Floats, Floats]:
        """Of the log-posterior: its gradient and the expected information, with numerical derivatives of predictions.

        With v the errors and F their variances: Σ (½(v²/F − 1) ∂log F − v ∂v/F) and Σ (∂v∂vᵀ/F + ½ ∂log F ∂log Fᵀ).
        """
        error, size = self.predict(np.concatenate([theta[None], theta + STEP * np.eye(theta.size)]))
        v, f = error[0], size[0]
        turn, grow = (error[1:] - v) / STEP, np.log(size[1:] / f) / STEP
        mean, sd = self.prior
        gradient = grow @ (0.5 * (v**2 / f - 1.0)) - turn @ (v / f) - (theta - mean) / sd**2
        return gradient, (turn / f) @ turn.T + 0.5 * grow @ grow.T + np.diag(sd**-2.0)


class Fit(NamedTuple):
    """A model at its best coordinates."""

    model: Model
    theta: Floats
    log_posterior: float
    information: Floats

    @property
    def log_evidence(self) -> float:
        """log ∫ likelihood × prior, by Laplace's approximation; β and −β are two equal peaks."""
        logdet = float(np.linalg.slogdet(self.information)[1])
        peaks = math.log(2.0) if self.model.order else 0.0
        return self.log_posterior + 0.5 * (self.theta.size * math.log(2.0 * math.pi) - logdet) + peaks

    def draws(self, count: int, generator: np.random.Generator) -> Floats:
        """Coordinates drawn from the normal law that the information gives: (count, coordinates)."""
        root = np.linalg.cholesky(self.information)
        return self.theta + np.linalg.solve(root.T, generator.normal(size=(self.theta.size, count))).T


def climb(model: Model, theta: Floats) -> Fit:
    """The nearest maximum of the log-posterior, by Fisher scoring with Levenberg's damping."""
    value, damping = model.log_posterior(theta), 1e-2
    gradient, information = model.slope(theta)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)
        trial = theta + np.clip(step, -2.0, 2.0)
        found = model.log_posterior(trial)
        if math.isfinite(found) and found > value:
            gain, theta, value, damping = found - value, trial, found, damping / 5.0
            if gain < ENOUGH:
                break
            gradient, information = model.slope(theta)
        else:
            damping *= 8.0
            if damping > 1e6 or float(gradient @ step) < ENOUGH:
                break
    return Fit(model, theta, value, model.slope(theta)[1])


def first_guesses(model: Model, direction: Floats) -> list[Floats]:
    """Where to begin an order's first fit: β along `direction`, and z persistent, barely so, or alternating."""
    theta = model.prior[0].copy()
    if not model.order:
        return [theta]
    theta[model.places["beta"]] = 0.7 * (direction.mean() or 0.5 if model.tied else direction)
    found = []
    for x in (1.2, 0.3, -0.8):
        theta[0] = x
        found.append(theta.copy())
    return found


def longer(fit: Fit, log: Log) -> tuple[Model, Floats]:
    """The model of the next order, and the fit's coordinates in it: the same process, its last γ being 0."""
    model = Model(log, fit.model.order + 1)
    theta = np.insert(fit.theta, fit.model.order, 0.0)
    return model, theta


def fit_orders(log: Log, direction: Floats, tick: "object" = None) -> list[Fit]:
    """The best fit of every order 0 … 10. Each begins where the order before ended, and afresh."""
    still, one = Model(log, 0), Model(log, 1)
    fits = [climb(still, first_guesses(still, direction)[0])]
    fits.append(max((climb(one, theta) for theta in first_guesses(one, direction)), key=lambda fit: fit.log_posterior))
    for order in ORDERS[2:]:
        model, theta = longer(fits[-1], log)
        fits.append(climb(model, theta))
        if callable(tick):
            tick(order)
    return fits
