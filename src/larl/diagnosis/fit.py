"""Fit the latent AR bandit of every order k = 0 … 10 to a log: maximum a posteriori, and the evidence of each order.

Coordinates: partial autocorrelations are tanh(x), so every fit is stable. With s_a the standard deviation of arm a's
rewards around their mean m_a: μ_a = m_a + s_a n, β_a = s_a b, sd_a = s_a eˡ. z has stationary variance 1.
With several units each unit has its own level, N(0, τ²). A unit's start has κ² times the stationary covariance.
The priors are weak; they bound parameters about which a short log has no information. docs/diagnose.md lists them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.short_repr import short_repr
from larl.diagnosis.subsample import subsample
from larl.statespace.durbin_levinson import ar_from_partial_autocorrelations
from larl.statespace.smoother import ARParameters, innovations

ORDERS = tuple(range(11))
# Prior mean and standard deviation of each kind of coordinate; those of x_j are 0 and 1/√j.
PRIORS = {"mu": (0.0, 1.0), "noise": (-0.3, 0.7), "beta": (0.0, 1.0), "level": (-1.5, 1.0), "start": (0.0, 1.0)}
DERIVATIVE_STEP = 1e-5
MIN_GAIN = 2e-3  # of the log-posterior; scoring stops at a step that gains less
MAX_STEPS, TRIAL_STEPS = 40, 5  # scoring steps of a fit, and from each initial guess
RANDOM_GUESSES, MANY_ARMS = 4, 8  # random guesses per order; one if there are many arms
TRIAL_ROWS = 400  # rows on which initial guesses are compared
PROPOSALS_PER_DRAW, PROPOSAL_DF = 10, 7.0
MAX_X = 4.0  # tanh(4) = 0.9993


@dataclass(frozen=True)
class Model:
    """A latent AR(order) bandit for a log. `tied`: all arms have the same β. Order 0: every β is 0."""

    log: Log
    order: int
    tied: bool = False

    @cached_property
    def centre(self) -> Floats:
        """m_a, the mean reward of each arm."""
        return np.bincount(self.log.arm, self.log.reward, self.log.arms) / np.maximum(self.log.plays, 1)

    @cached_property
    def spread(self) -> Floats:
        """s_a, the standard deviation of each arm, shrunk towards that of all arms with the weight of four plays."""
        squared = (self.log.reward - self.centre[self.log.arm]) ** 2
        squares, plays = np.bincount(self.log.arm, squared, self.log.arms), self.log.plays
        pooled = squares.sum() / max(self.log.rows - self.log.arms, 1)
        result: Floats = np.sqrt((squares + 4.0 * pooled) / (np.maximum(plays - 1, 0) + 4.0))
        return result

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The positions of each kind of coordinate in theta."""
        arms, has_state = self.log.arms, self.order > 0
        sizes = {
            "partials": self.order,
            "mu": arms,
            "noise": arms,
            "beta": (1 if self.tied else arms) if has_state else 0,
            "level": int(self.log.units > 1),
            "start": int(has_state),
        }
        ends = np.cumsum(list(sizes.values()))
        return {name: slice(int(end - size), int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Prior mean and standard deviation of every coordinate."""
        mean, sd = np.zeros(self.slices["start"].stop), np.ones(self.slices["start"].stop)
        sd[self.slices["partials"]] = 1.0 / np.sqrt(np.arange(1, self.order + 1))
        for name, (prior_mean, prior_sd) in PRIORS.items():
            mean[self.slices[name]], sd[self.slices[name]] = prior_mean, prior_sd
        return mean, sd

    def parameters(self, theta: Floats) -> ARParameters:
        """Return the parameters at several coordinates, one per row."""
        count, k, arms = theta.shape[0], max(self.order, 1), self.log.arms
        part = {name: theta[:, columns] for name, columns in self.slices.items()}
        partials = np.zeros((count, k))
        partials[:, : self.order] = np.tanh(np.clip(part["partials"], -MAX_X, MAX_X))
        gammas, acf, shock = np.zeros((count, k)), np.zeros((count, k + 1)), np.empty(count)
        for row in range(count):
            shock[row] = ar_from_partial_autocorrelations(partials[row], gammas[row], acf[row])
        beta = np.zeros((count, arms))
        if self.order:
            beta = part["beta"] * (self.spread.mean() if self.tied else self.spread)
            beta = np.ascontiguousarray(np.broadcast_to(beta, (count, arms)))
        level = (np.exp(part["level"][:, 0]) * self.spread.mean()) ** 2 if self.log.units > 1 else np.zeros(count)
        start = np.exp(2.0 * part["start"][:, 0]) if self.order else np.ones(count)
        return ARParameters(
            gammas=gammas,
            acf=acf,
            shock=shock,
            mu=self.centre + self.spread * part["mu"],
            beta=beta,
            variance=(self.spread * np.exp(part["noise"])) ** 2,
            level=level,
            start=start,
        )

    def innovations(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return every reward's prediction error and its variance, at each of several coordinates."""
        log = self.log
        error, variance = np.empty((theta.shape[0], log.rows)), np.empty((theta.shape[0], log.rows))
        innovations(log.arm, log.gap, log.reward, self.parameters(theta), error, variance)
        return error, variance

    def log_likelihoods(self, theta: Floats) -> Floats:
        """Return log p(rewards | actions, parameters) at each of several coordinates."""
        error, variance = self.innovations(theta)
        result: Floats = -0.5 * np.sum(math.log(2.0 * math.pi) + np.log(variance) + error**2 / variance, axis=1)
        return result

    def log_posteriors(self, theta: Floats) -> Floats:
        """Return the log-likelihood plus the log prior density at each of several coordinates."""
        mean, sd = self.prior
        prior = -0.5 * np.sum(((theta - mean) / sd) ** 2 + np.log(2.0 * math.pi * sd**2), axis=1)
        result: Floats = self.log_likelihoods(theta) + prior
        return result

    def log_likelihood(self, theta: Floats) -> float:
        """Return the log-likelihood at one point."""
        return float(self.log_likelihoods(theta[None])[0])

    def log_posterior(self, theta: Floats) -> float:
        """Return the log-posterior, up to a constant, at one point."""
        return float(self.log_posteriors(theta[None])[0])

    def gradient_and_information(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the log-posterior and the expected Fisher information, by numerical derivatives.

        With v the innovations and F their variances: Σ (½(v²/F − 1) ∂log F − v ∂v/F) and
        Σ (∂v∂vᵀ/F + ½ ∂log F ∂log Fᵀ).
        """
        error, variance = self.innovations(np.concatenate([theta[None], theta + DERIVATIVE_STEP * np.eye(theta.size)]))
        v, f = error[0], variance[0]
        dv, dlog_f = (error[1:] - v) / DERIVATIVE_STEP, np.log(variance[1:] / f) / DERIVATIVE_STEP
        mean, sd = self.prior
        gradient = dlog_f @ (0.5 * (v**2 / f - 1.0)) - dv @ (v / f) - (theta - mean) / sd**2
        # einsum, because the BLAS threads behind @ made this ten times slower on busy cores.
        information = np.einsum("it,jt->ij", dv / f, dv) + 0.5 * np.einsum("it,jt->ij", dlog_f, dlog_f)
        return gradient, information + np.diag(sd**-2.0)


class Fit(NamedTuple):
    """A model at the mode of its posterior."""

    model: Model
    theta: Floats
    log_posterior: float
    information: Floats

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def log_evidence(self) -> float:
        """Laplace approximation of log ∫ likelihood × prior. β and −β are two equal modes."""
        logdet = float(np.linalg.slogdet(self.information)[1])
        modes = math.log(2.0) if self.model.order else 0.0
        return self.log_posterior + 0.5 * (self.theta.size * math.log(2.0 * math.pi) - logdet) + modes

    def draws(self, count: int, generator: np.random.Generator) -> Floats:
        """Return draws from the posterior, (count, coordinates), by sampling-importance-resampling.

        The proposal is a multivariate t distribution around the mode with the information as its precision. Weights are
        truncated at their mean times the square root of their number (Ionides 2008).
        """
        size, proposals = self.theta.size, PROPOSALS_PER_DRAW * count
        normal, chi = (
            generator.normal(size=(size, proposals)),
            generator.chisquare(PROPOSAL_DF, proposals) / PROPOSAL_DF,
        )
        offset = np.linalg.solve(np.linalg.cholesky(self.information).T, normal / np.sqrt(chi)).T
        proposed = self.theta + offset
        distance = np.einsum("ni,ij,nj->n", offset, self.information, offset)
        log_proposal = -0.5 * (PROPOSAL_DF + size) * np.log1p(distance / PROPOSAL_DF)
        with np.errstate(all="ignore"):  # a proposal far from the mode may overflow; its weight is 0
            log_weights = self.model.log_posteriors(proposed) - log_proposal
            log_weights = np.nan_to_num(log_weights, nan=-np.inf, posinf=-np.inf)
        weights = np.exp(log_weights - log_weights.max())
        weights = np.minimum(weights, weights.mean() * math.sqrt(proposals))
        chosen: Floats = proposed[generator.choice(proposals, count, p=weights / weights.sum())]
        return chosen


def fisher_scoring(model: Model, theta: Floats, steps: int = MAX_STEPS) -> Fit:
    """Return the nearest mode of the posterior, by Fisher scoring with Levenberg damping, in at most `steps` steps."""
    value, damping = model.log_posterior(theta), 1e-2
    gradient, information = model.gradient_and_information(theta)
    for _ in range(steps):
        step = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)
        trial = theta + np.clip(step, -2.0, 2.0)
        trial_value = model.log_posterior(trial)
        if math.isfinite(trial_value) and trial_value > value:
            gain, theta, value, damping = trial_value - value, trial, trial_value, damping / 5.0
            gradient, information = model.gradient_and_information(theta)
            if gain < MIN_GAIN:
                break
        else:
            damping *= 8.0
            if damping > 1e6 or float(gradient @ step) < MIN_GAIN:
                break
    return Fit(model, theta, value, information)


def fit_from_guesses(model: Model, guesses: list[Floats]) -> Fit:
    """Take a few scoring steps from every guess; return the mode that the best of them leads to."""
    trials = [fisher_scoring(model, theta, TRIAL_STEPS) for theta in guesses]
    return fisher_scoring(model, max(trials, key=lambda fit: fit.log_posterior).theta)


def burg(series: Floats, order: int) -> Floats:
    """Return partial autocorrelations 1 … order by Burg's recursion. They are always those of a stable process."""
    forward, backward, partials = series[1:], series[:-1], np.zeros(order)
    for j in range(order):
        power = float(forward @ forward + backward @ backward)
        if forward.size < 2 or power <= 0.0:
            break
        partials[j] = 2.0 * float(forward @ backward) / power
        forward, backward = (forward - partials[j] * backward)[1:], (backward - partials[j] * forward)[:-1]
    return partials


def initial_guesses(model: Model, direction: Floats, generator: np.random.Generator) -> list[Floats]:
    """Return points at which a fit may begin, with β along `direction`.

    The AR process is the one that Burg's recursion finds in the rewards, or drawn from the prior; for order 1 also
    persistent, weakly persistent and alternating. Half of the guesses have a large start variance.
    """
    theta = model.prior[0].copy()
    if not model.order:
        return [theta]
    weight = direction.mean() or 0.5 if model.tied else direction
    theta[model.slices["beta"]] = 0.7 * weight
    log, scale = model.log, np.broadcast_to(direction, model.centre.shape) / model.spread
    burg_partials = burg((log.reward - model.centre[log.arm]) * scale[log.arm], model.order)
    count = RANDOM_GUESSES if log.arms <= MANY_ARMS else 1
    partials = generator.normal(size=(count, model.order)) * model.prior[1][: model.order]
    partials = np.concatenate([np.tile(np.arctanh(0.99 * burg_partials), (2, 1)), partials])
    if model.order == 1:
        partials = np.concatenate([partials, [[1.2], [0.3], [-0.8]]])
    guesses = [np.concatenate([x, theta[model.order :]]) for x in partials]
    for guess in guesses[::2]:
        guess[model.slices["start"]] = 1.5
    return guesses


def embed(fit: Fit, order: int) -> Floats:
    """Return a fit's coordinates in the model of another order: partial autocorrelations truncated or padded with 0."""
    old = fit.model.order
    partials = np.zeros(order)
    partials[: min(old, order)] = fit.theta[: min(old, order)]
    return np.concatenate([partials, fit.theta[old:]])


def fit_orders(log: Log, direction: Floats, tick: Callable[[], None] = lambda: None) -> list[Fit]:
    """Return the best fit of every order 0 … 10.

    The posterior has many modes, and nested models must agree on theirs. So guesses are compared on a few hundred rows.
    Then each order starts at the best guess or at the fit of the order below, and again at the fit of the order above.
    """
    generator, few = np.random.default_rng(0), subsample(log, TRIAL_ROWS)
    fits, trial_fits = ([fisher_scoring(Model(part, 0), Model(part, 0).prior[0])] for part in (log, few))
    for order in ORDERS[1:]:
        small, model = Model(few, order), Model(log, order)
        guesses = [*initial_guesses(small, direction, generator)] + [embed(trial_fits[-1], order)] * (order > 1)
        trial_fits.append(fit_from_guesses(small, guesses))
        if few is log:
            fits.append(trial_fits[-1])
        else:
            from_trial = trial_fits[-1].theta
            from_below = embed(fits[-1], order) if order > 1 else from_trial
            fits.append(fisher_scoring(model, max(from_trial, from_below, key=model.log_posterior)))
        tick()
    for order in ORDERS[-2:0:-1]:
        again = fisher_scoring(fits[order].model, embed(fits[order + 1], order))
        fits[order] = max(fits[order], again, key=lambda fit: fit.log_posterior)
        tick()
    return fits


def fit_tied(fit: Fit, direction: Floats) -> Fit:
    """Return the fit of the same order with one β for all arms."""
    model = Model(fit.model.log, fit.model.order, tied=True)
    return fit_from_guesses(model, initial_guesses(model, direction, np.random.default_rng(0)))
