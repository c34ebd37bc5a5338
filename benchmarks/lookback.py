"""How well `larl.theory.best_lookback` chooses s: writes the table and the figure of docs/theory.md.

python benchmarks/lookback.py [--settings 64] [--trials 200]    (about ten minutes)

In random worlds LARL is simulated with every s from 0 to 12. The loss of a rule is the regret of the s that it chooses,
relative to the s with the smallest simulated regret. That minimum is itself noisy, so losses are slightly too large.
"""

import argparse
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import larl
from larl.theory import best_lookback, predicted_regret

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = Path(os.environ.get("LARL_BENCH", "results/bench"))
BEGIN, END = "<!-- lookback: begin -->", "<!-- lookback: end -->"
SEED = 2026
LOOKBACKS = range(13)
HORIZONS = (100, 200, 500, 1000, 2000)


def random_setting(rng: np.random.Generator) -> tuple[larl.LatentAR, int]:
    """Return a random world with 1 to 5 lags and 2 to 4 arms, and a horizon."""
    k, arms = int(rng.choice([1, 1, 2, 3, 5])), int(rng.choice([2, 2, 3, 4]))
    beta = (
        np.linspace(-1.0, 1.0, arms) if rng.random() < 0.5 else rng.choice([-1, 1], arms) * rng.uniform(0.3, 1.5, arms)
    )
    mu = np.zeros(arms) if rng.random() < 0.5 else rng.normal(0.0, 0.7, arms)
    world = larl.LatentAR(
        gammas=random_gammas(rng, k),
        beta=beta.round(2).tolist(),
        mu=mu.round(2).tolist(),
        sigma_r=round(float(np.exp(rng.uniform(np.log(0.5), np.log(4.0)))), 2),
        noise="common" if rng.random() < 0.4 else "scaled",
    )
    return world, int(rng.choice(HORIZONS))


def random_gammas(rng: np.random.Generator, k: int) -> list[float]:
    """Return coefficients of a stable process with a memory of several steps."""
    while True:
        gammas = (rng.uniform(-0.3, 1.0, k) * 0.9 / np.arange(1, k + 1) ** 0.7).round(3).tolist()
        try:
            world = larl.LatentAR(gammas=gammas, beta=[-1.0, 1.0], mu=[0.0, 0.0])
        except larl.InvalidValue:
            continue
        if 0.6 < world.spectral_radius < 0.98:
            return list(gammas)


def measure(world: larl.LatentAR, horizon: int, trials: int, seed: int) -> dict[str, Any]:
    """Return the simulated and the predicted regret of every s."""
    policies = {str(s): larl.LARL(s=s) for s in LOOKBACKS}
    summary = larl.compare(policies, world, horizon=horizon, trials=trials, seed=seed, keep="summary").summary()
    simulated = [float(summary["mean"][str(s)]) for s in LOOKBACKS]
    predicted = [predicted_regret(world, s, horizon) for s in LOOKBACKS]
    return {
        "world": world.to_dict(),
        "horizon": horizon,
        "simulated": simulated,
        "predicted": predicted,
        "s": int(np.argmin(predicted)),
        "k": world.k,
    }


def table(rows: list[dict[str, Any]], trials: int) -> str:
    """Return the losses of rules for s."""
    rules = {
        "`best_lookback`": [row["s"] for row in rows],
        "s = k": [row["k"] for row in rows],
        "s = 1": [1] * len(rows),
        "s = 5": [5] * len(rows),
    }
    groups = {
        "equal μ": [not any(row["world"]["mu"]) for row in rows],
        "unequal μ": [any(row["world"]["mu"]) for row in rows],
    }
    lines = [
        f"{len(rows)} random settings (k = 1 to 5, 2 to 4 arms, equal and unequal μ and β, both kinds of noise, "
        f"σ_r/σ_z = 0.5 to 4, T = {HORIZONS[0]} to {HORIZONS[-1]:,}), {trials} trials each. The loss is the regret "
        f"compared with that of the best s of 0 to {LOOKBACKS[-1]}:",
        "",
        "| settings | rule | mean loss | median | 90% of settings below | largest |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for title, members in ({"all": [True] * len(rows)} | groups).items():
        for name, chosen in rules.items():
            losses = [
                row["simulated"][s] / min(row["simulated"]) - 1.0
                for row, s, is_member in zip(rows, chosen, members, strict=True)
                if is_member
            ]
            numbers = (np.mean(losses), np.median(losses), np.quantile(losses, 0.9), np.max(losses))
            cells = " | ".join(f"{100 * number:.1f}%" for number in numbers)
            lines.append(f"| {title} ({len(losses)}) | {name} | {cells} |")
    ratio = [row["predicted"][row["s"]] / row["simulated"][row["s"]] for row in rows]
    low, middle, high = np.quantile(ratio, [0.05, 0.5, 0.95])
    lines += [
        "",
        f"Predicted divided by simulated regret at the chosen s: median {middle:.2f}; 90% of the settings are between "
        f"{low:.2f} and {high:.2f}.",
    ]
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Draw the best s over the horizon and the noise, for the paper's processes."""
    from matplotlib import pyplot as plt
    from matplotlib.colors import BoundaryNorm

    horizons, noises = np.geomspace(50, 20_000, 14).round().astype(int), np.geomspace(0.25, 8.0, 11)
    maps = {}
    for k in (1, 5, 10):
        gammas = larl.worlds.paper(k).gammas
        worlds = [larl.LatentAR(gammas=gammas, beta=(-1, 1), mu=(0, 0), sigma_r=float(noise)) for noise in noises]
        maps[k] = np.array([[best_lookback(world, int(horizon)) for horizon in horizons] for world in worlds])
    edges = [0, 1, 2, 3, 4, 5, 6, 8, 10, 13]
    colours = plt.get_cmap("viridis", len(edges) - 1)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for axis, (k, values) in zip(axes, maps.items(), strict=True):
        mesh = axis.pcolormesh(
            horizons, noises, values, norm=BoundaryNorm(edges, colours.N), cmap=colours, shading="nearest"
        )
        axis.set(xscale="log", yscale="log", xlabel="horizon T", title=f"k = {k}")
        axis.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
        axis.minorticks_off()
    axes[0].set_ylabel("σ_r / σ_z")
    bar = figure.colorbar(mesh, ax=axes, label="best s", ticks=[(a + b) / 2 for a, b in pairwise(edges)])
    bar.ax.set_yticklabels([f"{a}" if b - a == 1 else f"{a}–{b - 1}" for a, b in pairwise(edges)])
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=64)
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args()
    rng, rows = np.random.default_rng(SEED), []
    for number in range(options.settings):
        world, horizon = random_setting(rng)
        rows.append(measure(world, horizon, options.trials, SEED + number))
        best = int(np.argmin(rows[-1]["simulated"]))
        print(
            f"setting {number + 1} of {options.settings}: s = {rows[-1]['s']}, best {best}", file=sys.stderr, flush=True
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "lookback.json").write_text(json.dumps(rows, indent=2))
    part, path = table(rows, options.trials), DOCS / "theory.md"
    print(part)
    draw(DOCS / "images" / "lookback-map.png")
    text = path.read_text(encoding="utf-8")
    if BEGIN in text:
        path.write_text(f"{text.split(BEGIN)[0]}{BEGIN}\n{part}\n{END}{text.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
