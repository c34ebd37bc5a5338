"""Time of the import, of the first result in a new process, and of compiling every policy ahead of time.

The cache of compiled code starts empty. `run.py` passes it to the next scripts, so nothing is compiled twice.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import FOLDER, save

EXAMPLE = """
import larl
world = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB(), "Kalman": larl.KalmanOracle()}
print(larl.compare(policies, world, horizon=200, trials=1000, seed=0).summary())
"""
COMMAND_LINE = "from larl.cli import main; main()"


def run_in_new_process(code: str, cache: Path, *arguments: str) -> tuple[float, str]:
    """Run code in a new Python process; return the seconds and the output."""
    environment, started = os.environ | {"NUMBA_CACHE_DIR": str(cache)}, time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.PIPE, env=environment, text=True
    )
    return time.perf_counter() - started, done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        cold, _ = run_in_new_process(EXAMPLE, cache)
        warm, python, imported, policy = (
            min(run_in_new_process(code, cache)[0] for _ in range(3))
            for code in (EXAMPLE, "pass", "import larl", "import larl; larl.LARL(5)")
        )
    cache_folder = Path(os.environ.get("NUMBA_CACHE_DIR") or FOLDER / "cache")
    if any(cache_folder.rglob("*.nbi")):
        sys.exit(f"NUMBA_CACHE_DIR must be an empty folder, got {cache_folder}")
    precompile_cold, output = run_in_new_process(COMMAND_LINE, cache_folder, "precompile")
    precompile_warm, _ = run_in_new_process(COMMAND_LINE, cache_folder, "precompile")
    policies = [line.split("  ", 1)[1] for line in output.splitlines()[:-1]]
    seconds: dict[str, Any] = {
        "python -c pass": python,
        "import larl": imported,
        "import larl, create a policy": policy,
        "first result, warm cache": warm,
        "first result, cold cache": cold,
        "larl precompile, cold cache": precompile_cold,
        "larl precompile, warm cache": precompile_warm,
    }
    for name, value in seconds.items():
        print(f"{name:28s} {value:7.2f} s")
    save("startup", {"seconds": seconds, "policies": policies})


if __name__ == "__main__":
    main()
