"""Run pilots on threads and keep the result of each in one file, so that an interrupted report resumes."""

import json
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from larl._core.files import write_atomically
from larl._core.kernel_cache import SOURCES, source_digest
from larl._core.progress import Progress
from larl.simulation.tasks import default_threads

Values = dict[str, Any]  # that JSON can hold


def run_pilots(
    names: Iterable[str],
    pilots: int,
    run: Callable[[str, int], Values],
    folder: Path,
    key: str,
    bar: Progress,
    steps: int,
    threads: int | None,
) -> dict[str, list[Values]]:
    """Return `run(name, pilot)` for each population and pilot; finished ones are read from `folder`.

    `key` names everything else that decides the values; a pilot counts as `steps` steps of the bar. Kernels release the
    GIL, so pilots run side by side.
    """
    folder.mkdir(parents=True, exist_ok=True)
    code = source_digest((*SOURCES, "priors/*.py"))
    found: dict[tuple[str, int], Values] = {}
    with ThreadPoolExecutor(threads or default_threads(), "larl") as pool:
        running: dict[Future[Values], tuple[str, int]] = {}
        for number, name in enumerate(names):
            for pilot in range(pilots):
                path, full_key = folder / f"{number}-{pilot}.json", f"{code} {name}, {key}"  # any number of pilots
                values = read_json(path)
                if values.get("key") == full_key:
                    found[name, pilot] = values
                    bar.advance_untimed(steps)
                else:
                    running[pool.submit(run_and_write, run, name, pilot, path, full_key)] = (name, pilot)
        try:
            for future in as_completed(running):
                found[running[future]] = future.result()
                bar.finish_steps(steps)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: [found[name, pilot] for pilot in range(pilots)] for name in names}


def run_and_write(run: Callable[[str, int], Values], name: str, pilot: int, path: Path, key: str) -> Values:
    """Run one pilot and write its values to a file."""
    values = run(name, pilot) | {"key": key}
    write_atomically(path, partial(write_json, values))
    return values


def read_json(path: Path) -> Values:
    """Return the values of a JSON file, none if it is missing or damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def write_json(values: Values, path: Path) -> None:
    """Write values to a JSON file."""
    path.write_text(json.dumps(values), encoding="utf-8")
