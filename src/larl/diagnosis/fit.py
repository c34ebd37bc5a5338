"""The latent AR bandit fitted to a log: maximum likelihood with weak priors, every order k = 0 … 10, and its evidence.

Coordinates: partial autocorrelations as tanh(x), so that every fit is stable; and in units of the spread s_a of arm a's
rewards around their mean m_a: μ_a = m_a + s_a n, β_a = s_a b, sd_a = s_a eˡ. z has variance 1 in the long run here.
With several units each has its own level, N(0, τ²); what a unit starts from has the long run's covariance times κ².
The priors only keep what a short log says nothing about from running away: docs/diagnose.md lists them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from larl.diagnosis.brief import brief
from larl.diagnosis.kernels import Floats, from_partials, innovations
from larl.diagnosis.log import Log
from larl.diagnosis.subsample import pieces

ORDERS = tuple(range(11))
# Mean and sd a priori of each kind of coordinate; those of x_j are 0 and 1/√j.
MU, BETA, NOISE, LEVEL, START = (0.0, 1.0), (0.0, 1.0), (-0.3, 0.7), (-1.5, 1.0), (0.0, 1.0)
STEP = 1e-5  # of numerical derivatives
ENOUGH = 2e-3  # log-likelihood: a step that gains less is the last
MOST_STEPS, FEW_STEPS = 40, 5
RANDOM, MANY_ARMS = 4, 8  # random guesses of each order; one only where there are many arms
FEW_ROWS = 400
PROPOSALS, FREEDOM = 10, 7.0  # for each draw; degrees of freedom of their law
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

    def __repr__(self) -> str:
        return brief(self)


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
            "partials": self.order,
            "mu": arms,
            "noise": arms,
            "beta": (1 if self.tied else arms) if moving else 0,
            "level": int(self.log.units > 1),
            "start": int(moving),
        }
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

    def log_likelihoods(self, theta: Floats) -> Floats:
        """log p(rewards | actions, parameters) at each of several coordinates."""
        error, size = self.predict(theta)
        result: Floats = -0.5 * np.sum(math.log(2.0 * math.pi) + np.log(size) + error**2 / size, axis=1)
        return result

    def log_posteriors(self, theta: Floats) -> Floats:
        """The log-likelihoods and the priors' log-densities."""
        mean, sd = self.prior
        prior = -0.5 * np.sum(((theta - mean) / sd) ** 2 + np.log(2.0 * math.pi * sd**2), axis=1)
        result: Floats = self.log_likelihoods(theta) + prior
        return result

    def log_likelihood(self, theta: Floats) -> float:
        """That of one."""
        return float(self.log_likelihoods(theta[None])[0])

    def log_posterior(self, theta: Floats) -> float:
        """That of one."""
        return float(self.log_posteriors(theta[None])[0])

    def slope(self, theta: Floats) -> tuple[Floats, Floats]:
        """Of the log-posterior: its gradient and the expected information, with numerical derivatives of predictions.

        With v the errors and F their variances: Σ (½(v²/F − 1) ∂log F − v ∂v/F) and Σ (∂v∂vᵀ/F + ½ ∂log F ∂log Fᵀ).
        """
        error, size = self.predict(np.concatenate([theta[None], theta + STEP * np.eye(theta.size)]))
        v, f = error[0], size[0]
        turn, grow = (error[1:] - v) / STEP, np.log(size[1:] / f) / STEP
        mean, sd = self.prior
        gradient = grow @ (0.5 * (v**2 / f - 1.0)) - turn @ (v / f) - (theta - mean) / sd**2
        # einsum and not @: threads of a linear algebra library that wait for busy cores made this ten times slower.
        information = np.einsum("it,jt->ij", turn / f, turn) + 0.5 * np.einsum("it,jt->ij", grow, grow)
        return gradient, information + np.diag(sd**-2.0)


class Fit(NamedTuple):
    """A model at its best coordinates."""

    model: Model
    theta: Floats
    log_posterior: float
    information: Floats

    def __repr__(self) -> str:
        return brief(self)

    @property
    def log_evidence(self) -> float:
        """log ∫ likelihood × prior, by Laplace's approximation; β and −β are two equal peaks."""
        logdet = float(np.linalg.slogdet(self.information)[1])
        peaks = math.log(2.0) if self.model.order else 0.0
        return self.log_posterior + 0.5 * (self.theta.size * math.log(2.0 * math.pi) - logdet) + peaks

    def draws(self, count: int, generator: np.random.Generator) -> Floats:
        """Coordinates drawn from the posterior: (count, coordinates).

        Ten times as many are drawn from a t law around the peak, with the information's shape, and so many of them are
        drawn again by their weights, none of which counts for more than the root of their number (Ionides 2008).
        """
        size, many = self.theta.size, PROPOSALS * count
        normal, chi = generator.normal(size=(size, many)), generator.chisquare(FREEDOM, many) / FREEDOM
        away = np.linalg.solve(np.linalg.cholesky(self.information).T, normal / np.sqrt(chi)).T
        proposed = self.theta + away
        distance = np.einsum("ni,ij,nj->n", away, self.information, away)
        density = -0.5 * (FREEDOM + size) * np.log1p(distance / FREEDOM)
        with np.errstate(all="ignore"):  # a proposal that is far out may overflow, and then counts for nothing
            logs = np.nan_to_num(self.model.log_posteriors(proposed) - density, nan=-np.inf, posinf=-np.inf)
        weights = np.exp(logs - logs.max())
        weights = np.minimum(weights, weights.mean() * math.sqrt(many))
        chosen: Floats = proposed[generator.choice(many, count, p=weights / weights.sum())]
        return chosen


def climb(model: Model, theta: Floats, steps: int = MOST_STEPS) -> Fit:
    """The nearest maximum of the log-posterior, by Fisher scoring with Levenberg's damping, in at most `steps`."""
    value, damping = model.log_posterior(theta), 1e-2
    gradient, information = model.slope(theta)
    for _ in range(steps):
        step = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)
        trial = theta + np.clip(step, -2.0, 2.0)
        found = model.log_posterior(trial)
        if math.isfinite(found) and found > value:
            gain, theta, value, damping = found - value, trial, found, damping / 5.0
            gradient, information = model.slope(theta)
            if gain < ENOUGH:
                break
        else:
            damping *= 8.0
            if damping > 1e6 or float(gradient @ step) < ENOUGH:
                break
    return Fit(model, theta, value, information)


def best_climb(model: Model, guesses: list[Floats]) -> Fit:
    """The best maximum: a few steps from every guess, and to the end from the highest."""
    begun = [climb(model, theta, FEW_STEPS) for theta in guesses]
    return climb(model, max(begun, key=lambda fit: fit.log_posterior).theta)


def burg(series: Floats, order: int) -> Floats:
    """Partial autocorrelations 1 … order by Burg's recursion: always those of a stable process."""
    forward, backward, found = series[1:], series[:-1], np.zeros(order)
    for j in range(order):
        power = float(forward @ forward + backward @ backward)
        if forward.size < 2 or power <= 0.0:
            break
        found[j] = 2.0 * float(forward @ backward) / power
        forward, backward = (forward - found[j] * backward)[1:], (backward - found[j] * forward)[:-1]
    return found


def guesses(model: Model, direction: Floats, generator: np.random.Generator) -> list[Floats]:
    """Where a fit may begin: β along `direction`; z as Burg finds it where noise is left out of account, persistent,
    barely so, alternating, and as the prior has it; from a usual start and from a large one."""
    theta = model.prior[0].copy()
    if not model.order:
        return [theta]
    weight = direction.mean() or 0.5 if model.tied else direction
    theta[model.places["beta"]] = 0.7 * weight
    log, rough = model.log, np.broadcast_to(direction, model.centre.shape) / model.spread
    seen = burg((log.reward - model.centre[log.arm]) * rough[log.arm], model.order)
    count = RANDOM if log.arms <= MANY_ARMS else 1
    partials = generator.normal(size=(count, model.order)) * model.prior[1][: model.order]
    partials = np.concatenate([np.tile(np.arctanh(0.99 * seen), (2, 1)), partials])
    if model.order == 1:
        partials = np.concatenate([partials, [[1.2], [0.3], [-0.8]]])
    found = [np.concatenate([x, theta[model.order :]]) for x in partials]
    for guess in found[::2]:
        guess[model.places["start"]] = 1.5
    return found


def neighbour(fit: Fit, order: int) -> Floats:
    """A fit's coordinates in the model of another order: partial autocorrelations cut off, or followed by 0."""
    old = fit.model.order
    partials = np.zeros(order)
    partials[: min(old, order)] = fit.theta[: min(old, order)]
    return np.concatenate([partials, fit.theta[old:]])


def fit_orders(log: Log, direction: Floats, tick: Callable[[], None] = lambda: None) -> list[Fit]:
    """The best fit of every order 0 … 10.

    Guesses are tried out on a few hundred rows. Upwards each order begins at the best of them or where the one before
    ended, downwards where the one after ended: the likelihood has many peaks, and nested models must agree on theirs.
    """
    generator, few = np.random.default_rng(0), pieces(log, FEW_ROWS)
    fits, rough = ([climb(Model(part, 0), Model(part, 0).prior[0])] for part in (log, few))
    for order in ORDERS[1:]:
        small, model = Model(few, order), Model(log, order)
        starts = [*guesses(small, direction, generator)] + [neighbour(rough[-1], order)] * (order > 1)
        rough.append(best_climb(small, starts))
        if few is log:
            fits.append(rough[-1])
        else:
            best = max(
                rough[-1].theta, neighbour(fits[-1], order) if order > 1 else rough[-1].theta, key=model.log_posterior
            )
            fits.append(climb(model, best))
        tick()
    for order in ORDERS[-2:0:-1]:
        again = climb(fits[order].model, neighbour(fits[order + 1], order))
        fits[order] = max(fits[order], again, key=lambda fit: fit.log_posterior)
        tick()
    return fits


def fit_tied(fit: Fit, direction: Floats) -> Fit:
    """The same order with one β for all arms."""
    model = Model(fit.model.log, fit.model.order, tied=True)
    return best_climb(model, guesses(model, direction, np.random.default_rng(0)))
