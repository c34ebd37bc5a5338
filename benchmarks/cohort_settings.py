"""Choose the settings of `CohortLARL`: regret relative to the Kalman filter on seeds that no report uses.

    python benchmarks/cohort_settings.py [--cohorts 6] [--seed 5000]

It prints one row for each penalty and alpha. The random worlds with three arms differ from those of the report.
"""

import argparse

import larl
from larl.reports.cohorts.experiments import (
    STEPS,
    UNITS,
    Scope,
    Setting,
    cohort_world,
    filter_regret,
    identical,
    settings,
)
from larl.reports.cohorts.report import format_ratio

PENALTIES, ALPHAS = (1.0, 3.0, 10.0), (0.25, 0.5, 1.0)


def tuning_settings() -> dict[str, Setting]:
    """Return the populations of the report, with other random worlds."""
    same = {name: setting for name, setting in settings().items() if not name.startswith("3 arms")}
    drawn = {f"3 arms, seed {seed}": identical(larl.worlds.random(k=2, arms=3, seed=seed)) for seed in range(3, 11)}
    return same | drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=6)
    parser.add_argument("--seed", type=int, default=5000)
    options = parser.parse_args()
    scope = Scope(options.cohorts, seed=options.seed)
    for name, setting in tuning_settings().items():
        world = cohort_world(setting, scope)
        best = filter_regret(world, scope)
        for penalty in PENALTIES:
            for alpha in ALPHAS:
                result = larl.compare(
                    {"it": larl.CohortLARL(penalty=penalty, alpha=alpha)},
                    world,
                    horizon=STEPS,
                    trials=scope.cohorts,
                    seed=scope.seed,
                    units=UNITS,
                    pooling="partial",
                    progress=False,
                )
                ratio = format_ratio(result.total().values.ravel(), best)
                print(f"{name}: penalty {penalty:g}, alpha {alpha:g}: {ratio}", flush=True)


if __name__ == "__main__":
    main()
