"""Import, the first result of a new process, and compiling every policy ahead of time.

The cache of machine code starts empty. `run.py` hands it to the scripts that follow, so nothing is compiled twice.
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
WARM = "from larl.cli import main; main()"


def in_new_process(code: str, cache: Path, *words: str) -> tuple[float, str]:
    """Seconds that a new Python takes to run some code, and what it prints."""
    environment, started = os.environ | {"NUMBA_CACHE_DIR": str(cache)}, time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, stdout=subprocess.PIPE, env=environment, text=True
    )
    return time.perf_counter() - started, done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        cold, _ = in_new_process(EXAMPLE, cache)
        warm, bare, light, used = (
            min(in_new_process(code, cache)[0] for _ in range(3))
            for code in (EXAMPLE, "pass", "import larl", "import larl; larl.LARL(5)")
        )
    kept = Path(os.environ.get("NUMBA_CACHE_DIR") or FOLDER / "cache")
    if any(kept.rglob("*.nbi")):
        sys.exit(f"{kept} is not empty: give NUMBA_CACHE_DIR another folder")
    first, said = in_new_process(WARM, kept, "warm")
    again, _ = in_new_process(WARM, kept, "warm")
    policies = [line.split("  ", 1)[1] for line in said.splitlines()[:-1]]
    found: dict[str, Any] = {
        "python alone": bare,
        "import larl": light,
        "import larl, make a policy": used,
        "first result, warm cache": warm,
        "first result, cold cache": cold,
        "larl precompile, cold cache": first,
        "larl precompile, warm cache": again,
    }
    for name, value in found.items():
        print(f"{name:28s} {value:7.2f} s")
    save("startup", {"seconds": found, "policies": policies})


if __name__ == "__main__":
    main()
