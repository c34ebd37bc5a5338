"""Growth of time and memory with the number of steps, and of time with the number of trials, lags and arms."""

import json
import subprocess
import sys
from typing import Any

import larl
from larl import worlds
from measure import exponent, make_run, save, shortest_times, world_with_arms

STEPS = [10**power for power in range(3, 8)]
TRIALS = [100, 1_000, 10_000, 100_000]
LAGS = [1, 2, 5, 10, 20, 40, 60]
ARMS = [2, 5, 10, 20, 40]
ONE_RUN = """
import json, resource, sys, time
import larl
name, steps = sys.argv[1], int(sys.argv[2])
spec = {"LARL(5)": larl.LARL(5), "UCB()": larl.UCB()}[name]
def run(horizon):
    larl.compare({"policy": spec}, larl.worlds.paper(1), horizon=horizon, trials=1, keep="summary", threads=1)
run(500)
def shortest(horizon, repeats):
    times = []
    for _ in range(repeats):
        started = time.process_time()
        run(horizon)
        times.append(time.process_time() - started)
    return min(times)
fixed = shortest(500, 7)
seconds = shortest(steps, 7 if steps < 10**6 else 2 if steps < 10**7 else 1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
print(json.dumps({"seconds": seconds, "fixed": fixed, "peak_mb": peak}))
"""


def run_long_trial(name: str, steps: int) -> dict[str, Any]:
    """Run one long trial in a new process; return its seconds, those of a trial of 500 steps, and the peak memory."""
    command = [sys.executable, "-c", ONE_RUN, name, str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return {"steps": steps} | json.loads(done.stdout)


def fit_exponent(sizes: list[int], seconds: list[float], first: int) -> dict[str, Any]:
    """Return sizes, times in µs, and the exponent fit_exponent over the sizes from `first`."""
    pairs = [(size, cost) for size, cost in zip(sizes, seconds, strict=True) if size >= first]
    return {"sizes": sizes, "us": [1e6 * each for each in seconds], "from": first, "to": sizes[-1]} | {
        "exponent": exponent([size for size, _ in pairs], [cost for _, cost in pairs])
    }


def main() -> None:
    results: dict[str, Any] = {"long": {}}
    for name in ("LARL(5)", "UCB()"):
        rows = [run_long_trial(name, steps) for steps in STEPS]
        fit = fit_exponent(STEPS, [max(row["seconds"] - row["fixed"], 1e-9) for row in rows], 10**5)
        results["long"][name] = {"rows": rows, "fit": fit}
        print(
            name,
            [f"{row['steps']:,}: {row['seconds']:.3g} s, {row['peak_mb']:.0f} MB" for row in rows],
            fit["exponent"],
        )
    times = shortest_times({str(n): make_run(larl.LARL(5), worlds.paper(1), 100, n, 1) for n in TRIALS}, 3)
    results["trials"] = fit_exponent(TRIALS, list(times.values()), 100)
    calls = {str(s): make_run(larl.LARL(s), world_with_arms(2), 400, 10, 1) for s in LAGS}
    results["s"] = fit_exponent(LAGS, [each / 4000 for each in shortest_times(calls, 5).values()], 20)
    calls = {str(arms): make_run(larl.LARL(5), world_with_arms(arms), 400, 5, 1) for arms in ARMS}
    results["arms"] = fit_exponent(ARMS, [each / 2000 for each in shortest_times(calls, 5).values()], 10)
    for name in ("trials", "s", "arms"):
        print(name, results[name])
    save("growth", results)


if __name__ == "__main__":
    main()
