"""First use in new processes, with and without compiled code in the cache, and compiling every policy ahead of time.

The cache of compiled code starts empty. `run.py` passes it to the next scripts, so nothing is compiled twice.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import FOLDER, save

EXAMPLE = """
import larl
world = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB(), "Kalman": larl.KalmanOracle()}
result = larl.compare(policies, world, horizon=200, trials=1000, seed=0)
print(result.summary())
result.plot_regret().savefig(sys.argv[1] + "/regret.png")
result.save(sys.argv[1] + "/run.nc")
"""
AGENT = """
import larl
agent = larl.Agent(larl.{policy}, arms=2)
agent.observe(agent.decide(), 1.0)
"""
COHORT = """
import larl
cohort = larl.Cohort(larl.CohortAuto(), arms=2, pooling="partial")
cohort.observe(cohort.decide("unit"), 1.0)
"""
OTHER_WORLD = """
import larl
world = larl.worlds.random_markov(2, 2, 0)
larl.compare({"LARL": larl.LARL(s=1), "UCB": larl.UCB()}, world, horizon=200, trials=1000)
"""
AFTER_EXAMPLE = "two policies in another world, after the README's example"
FIRST_USES = {
    "the README's example: three policies, a figure, a file": EXAMPLE,
    "the first step of `Agent(LARL(5))`": AGENT.format(policy="LARL(5)"),
    "the first step of `Agent(Auto())`": AGENT.format(policy="Auto()"),
    "the first step of `Cohort(CohortAuto())`": COHORT,
    AFTER_EXAMPLE: OTHER_WORLD,
}
COMMAND_LINE = "from larl.cli import main; main()"
REPEATS = 3


def run_in_new_process(code: str, cache: Path, *arguments: str) -> tuple[float, float, str]:
    """Run code in a new Python process; return seconds of wall time, seconds of processor time and the output."""
    environment, started = os.environ | {"NUMBA_CACHE_DIR": str(cache)}, time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + code, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, processor, done.stdout


def first_use(code: str, prepared_by: str | None) -> dict[str, float]:
    """Return the processor time of code with an empty cache, and in later processes."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        if prepared_by:
            run_in_new_process(prepared_by, cache, folder)
        cold = run_in_new_process(code, cache, folder)[1]
        return {"cold": cold, "warm": min(run_in_new_process(code, cache, folder)[1] for _ in range(REPEATS))}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        nothing, imported = (
            min(run_in_new_process(code, Path(folder))[1] for _ in range(REPEATS)) for code in ("pass", "import larl")
        )
    uses = {}
    for name, code in FIRST_USES.items():
        uses[name] = first_use(code, EXAMPLE if name == AFTER_EXAMPLE else None)
        print(f"{uses[name]['cold']:7.2f} {uses[name]['warm']:7.2f} s  {name}", flush=True)
    cache_folder = Path(os.environ.get("NUMBA_CACHE_DIR") or FOLDER / "cache")
    if any(cache_folder.rglob("*.o")):
        sys.exit(f"NUMBA_CACHE_DIR must be an empty folder, got {cache_folder}")
    wall, processor, output = run_in_new_process(COMMAND_LINE, cache_folder, "precompile")
    again, _, _ = run_in_new_process(COMMAND_LINE, cache_folder, "precompile")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # bytes, of one process
    print(f"{wall:7.2f} {again:7.2f} s  larl precompile; {processor:.0f} s of processor time, {largest / 1e9:.2f} GB")
    precompile = {"wall": wall, "processor": processor, "again": again, "largest": largest}
    policies = [line.split("  ", 1)[1] for line in output.splitlines()[:-1]]
    save(
        "startup",
        {"python": nothing, "import": imported, "uses": uses, "precompile": precompile, "policies": policies},
    )


if __name__ == "__main__":
    main()
