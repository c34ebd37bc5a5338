"""Measure policies that learn from contexts: the share of the gap from LARL to the Kalman filter that they close.

    python benchmarks/contexts.py [--trials 40] [--draws 2] [--first-world 0] [--policies AdaptiveLARL SharedLARL Auto]

The worlds have 2 and 3 arms and a latent AR(1), AR(2) or AR(3); `--draws` of each are drawn. Two context numbers have
effects that are standard normal, drawn for each arm. LARL gets the same contexts and, with hindsight, the best s of
1, 2, 3 and 5. The filter knows the world, also the contexts' effects. 100% is the filter's regret, 0% LARL's.
"Filter that learns" is a row for comparison: it knows γ, β and the noise, and learns levels and effects, with the
distribution from which they were drawn as its prior. It shows which share is left after the dynamics are known.

- effects: the two numbers.
- and noise: the same trials with five more numbers that have no effect.
- only noise: no number has an effect. Five numbers without effect are given to the policy, or none ("no context").
"""

import argparse
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_discrete_lyapunov

import larl
from larl.worlds import LatentAR, Simulator
from larl.worlds.variants import Contextual

LOOK_BACKS = (1, 2, 3, 5)
HORIZON, EFFECTS, NOISE, MEMORY = 200, 2, 5, 0.5
LEARNING, ALPHA = "filter that learns", 0.5
POLICIES: dict[str, larl.Policy] = {
    "AdaptiveLARL": larl.AdaptiveLARL(),
    "SharedLARL": larl.SharedLARL(),
    "Auto": larl.Auto(),
}
Totals = NDArray[np.float64]  # regret of each trial


@dataclass(frozen=True)
class Options:
    """What is simulated: trials of each world, their seed, and the policies without their contexts."""

    trials: int
    seed: int
    policies: dict[str, larl.Policy]


def totals(policies: dict[str, larl.Policy], world: larl.worlds.World, options: Options) -> dict[str, Totals]:
    """Return the regret of each trial, by policy."""
    result = larl.compare(policies, world, horizon=HORIZON, trials=options.trials, seed=options.seed, progress=False)
    return {name: result.total().sel(policy=name).values.ravel() for name in policies}


def learning_filter(base: LatentAR, eta: Totals, trial: int, seed: int) -> float:
    """Return the regret of one trial of the filter that knows γ, β and the noise of `base`, not μ and `eta`.

    The state has the lags of z, then the levels of the arms, then the effects of the contexts. It plays the largest
    mean + ALPHA standard deviations of what it learns (not of z, about which every arm tells).
    """
    arms, numbers = eta.shape
    simulator = Simulator(Contextual(base, eta=eta.tolist(), memory=MEMORY) if numbers else base, seed, trial)
    k, size, noise = base.k, base.k + arms * (1 + numbers), np.asarray(base.latent().sd) ** 2
    move, drift = np.eye(size), np.zeros((size, size))
    move[:k, :k] = np.vstack([base.gammas, np.eye(k)[:-1]])
    drift[0, 0] = base.sigma_z**2
    mean, cov, regret = np.zeros(size), np.eye(size), 0.0
    cov[:k, :k] = solve_discrete_lyapunov(move[:k, :k], drift[:k, :k])
    for _ in range(HORIZON):
        rows = np.zeros((arms, size))
        rows[:, 0] = base.beta
        rows[:, k : k + arms] = np.eye(arms)
        if numbers:
            rows[:, k + arms :] = np.kron(np.eye(arms), simulator.context)
        learnt = np.einsum("ai,ij,aj->a", rows[:, k:], cov[k:, k:], rows[:, k:])
        arm = int(np.argmax(rows @ mean + ALPHA * np.sqrt(np.maximum(learnt, 0.0))))
        regret += float(simulator.means.max() - simulator.means[arm])
        gain = cov @ rows[arm] / (rows[arm] @ cov @ rows[arm] + noise[arm])
        mean = move @ (mean + gain * (simulator.reward(arm) - rows[arm] @ mean))
        cov = move @ (cov - np.outer(gain, rows[arm] @ cov)) @ move.T + drift
        simulator.advance(arm)
    return regret


def learning_filters(base: LatentAR, eta: Totals, options: Options) -> dict[str, Totals]:
    """Return the regret of each trial of the filter that learns levels and effects."""
    return {LEARNING: np.array([learning_filter(base, eta, trial, options.seed) for trial in range(options.trials)])}


def best_larl(world: larl.worlds.World, context: int, options: Options) -> Totals:
    """Return the regret of LARL with the best look-back."""
    policies: dict[str, larl.Policy] = {str(s): larl.LARL(s, context=context, standardise=True) for s in LOOK_BACKS}
    return min(totals(policies, world, options).values(), key=np.mean)


def given(policies: dict[str, larl.Policy], context: int) -> dict[str, larl.Policy]:
    """Return the policies with contexts of a length."""
    return {name: replace(policy, context=context) for name, policy in policies.items()}  # type: ignore[call-arg]


def run_world(arms: int, k: int, number: int, options: Options) -> dict[str, dict[str, Totals]]:
    """Return the regret of every policy in each setting, for one drawn world."""
    base, draws = larl.worlds.random(k, arms, number), np.random.default_rng([arms, k, number])
    eta = draws.normal(size=(arms, EFFECTS))
    with_noise, zero = np.hstack([eta, np.zeros((arms, NOISE))]), np.zeros((arms, NOISE))
    effects, both, noise = (Contextual(base, eta=each.tolist(), memory=MEMORY) for each in (eta, with_noise, zero))
    oracle: dict[str, larl.Policy] = {"filter": larl.policies.KalmanOracle()}
    reference = totals(oracle, effects, options) | {"LARL": best_larl(effects, EFFECTS, options)}
    no_effect = totals(oracle, noise, options) | {"LARL": best_larl(noise, 0, options)}
    return {
        "effects": reference
        | learning_filters(base, eta, options)
        | totals(given(options.policies, EFFECTS), effects, options),
        "and noise": reference
        | learning_filters(base, with_noise, options)
        | totals(given(options.policies, EFFECTS + NOISE), both, options),
        "only noise": no_effect
        | learning_filters(base, zero, options)
        | totals(given(options.policies, NOISE), noise, options),
        "no context": no_effect
        | learning_filters(base, zero[:, :0], options)
        | totals(given(options.policies, 0), noise, options),
    }


def share(regrets: dict[str, Totals], policy: str) -> tuple[float, float]:
    """Return the share of the gap that a policy closes, and its standard error over trials of the same worlds."""
    gap = regrets["LARL"] - regrets["filter"]
    closed = regrets["LARL"] - regrets[policy]
    ratio = closed.mean() / gap.mean()
    rest = closed - ratio * gap
    return float(ratio), float(rest.std(ddof=1) / gap.mean() / math.sqrt(gap.size))


def cost(before: dict[str, Totals], after: dict[str, Totals], policy: str) -> tuple[float, float]:
    """Return by how much the share is smaller in `after`, and its standard error."""
    gap, more = before["LARL"] - before["filter"], after[policy] - before[policy]
    ratio = more.mean() / gap.mean()
    return float(ratio), float((more - ratio * gap).std(ddof=1) / gap.mean() / math.sqrt(gap.size))


def percent(value: tuple[float, float]) -> str:
    return f"{100.0 * value[0]:.0f} ± {100.0 * value[1]:.0f}%"


def joined(rows: list[dict[str, dict[str, Totals]]]) -> dict[str, dict[str, Totals]]:
    """Return the trials of several worlds as one."""
    return {
        setting: {name: np.concatenate([row[setting][name] for row in rows]) for name in rows[0][setting]}
        for setting in rows[0]
    }


def line(label: str, rows: list[dict[str, dict[str, Totals]]], policy: str) -> str:
    """Return a row of the table for some worlds."""
    all_rows = joined(rows)
    regret = all_rows["effects"] | {"and noise": all_rows["and noise"][policy]}
    columns = [
        *(f"{regret[name].mean():.0f}" for name in ("LARL", "filter", policy, "and noise")),
        percent(share(all_rows["effects"], policy)),
        percent(cost(all_rows["effects"], all_rows["and noise"], policy)),
        percent(share(all_rows["no context"], policy)),
        percent(cost(all_rows["no context"], all_rows["only noise"], policy)),
    ]
    return f"| {policy} | {label} | {' | '.join(columns)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--first-world", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    arguments = parser.parse_args()
    options = Options(arguments.trials, arguments.seed, {name: POLICIES[name] for name in arguments.policies})
    cells = [(arms, k) for arms in (2, 3) for k in (1, 2, 3)]
    results: dict[tuple[int, int], list[dict[str, dict[str, Totals]]]] = {cell: [] for cell in cells}
    for number in range(arguments.first_world, arguments.first_world + arguments.draws):
        for arms, k in cells:
            results[arms, k].append(run_world(arms, k, number, options))
            print(f"world {number}: {arms} arms, AR({k})", flush=True)
    print(
        "\n| policy | worlds | LARL's regret | the filter's | the policy's | with noise | share closed | cost of noise "
        "| share without contexts | cost of noise |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for policy in (LEARNING, *options.policies):
        for arms, k in cells:
            print(line(f"{arms} arms, AR({k})", results[arms, k], policy))
        print(line("all", [row for rows in results.values() for row in rows], policy))


if __name__ == "__main__":
    main()
