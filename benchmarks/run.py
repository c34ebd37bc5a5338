"""Every measurement, one after the other, then the page: `make bench`.

python benchmarks/run.py [floor policies …]    all of them unless named; the page is made of whatever is there
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
    "floor": [],
    "policies": [],
    "peers": [],
    "growth": [],
    "regret": [],
    "auto": ["--long", "20000"],
}


def main() -> None:
    wanted = sys.argv[1:] or list(SCRIPTS)
    unknown = set(wanted) - set(SCRIPTS)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}")
    here, cache = Path(__file__).parent, (FOLDER / "cache").resolve()
    if "startup" in wanted:
        shutil.rmtree(cache, ignore_errors=True)
    # One core is one core: a peer's linear algebra must not take the others.
    alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | alone | {"NUMBA_CACHE_DIR": str(cache), "LARL_BENCH": str(FOLDER)}
    for name in wanted:
        print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        subprocess.run([sys.executable, str(here / f"{name}.py"), *SCRIPTS[name]], check=True, env=environment)
        print(f"({time.monotonic() - started:.0f} s)", flush=True)
    subprocess.run([sys.executable, str(here / "page.py")], check=True)


if __name__ == "__main__":
    main()
