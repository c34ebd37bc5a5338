"""Run all measurements one after the other, then write docs/performance.md: `make bench`.

python benchmarks/run.py [bare_kernel policies …]    runs all measurements, or the named ones, and writes the page
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from measure import FOLDER

SCRIPTS = {
    "startup": [],
    "bare_kernel": [],
    "policies": [],
    "peer_speed": [],
    "growth": [],
    "peer_regret": [],
    "auto": ["--long", "20000"],
}


def main() -> None:
    names = sys.argv[1:] or list(SCRIPTS)
    unknown = set(names) - set(SCRIPTS)
    if unknown:
        sys.exit(f"unknown measurement: {', '.join(sorted(unknown))}; accepted: {', '.join(SCRIPTS)}")
    folder, cache = Path(__file__).parent, (FOLDER / "cache").resolve()
    if "startup" in names:
        shutil.rmtree(cache, ignore_errors=True)
    # Measurements of one core need single-threaded linear algebra in the other packages too.
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | one_thread | {"NUMBA_CACHE_DIR": str(cache), "LARL_BENCH": str(FOLDER)}
    for name in names:
        print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        subprocess.run([sys.executable, str(folder / f"{name}.py"), *SCRIPTS[name]], check=True, env=environment)
        print(f"({time.monotonic() - started:.0f} s)", flush=True)
    subprocess.run([sys.executable, str(folder / "page.py")], check=True)


if __name__ == "__main__":
    main()
