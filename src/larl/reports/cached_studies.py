"""Run studies and cache each result in one file, so that an interrupted report resumes."""

from pathlib import Path

from larl._core.progress import Progress
from larl._core.validation import InvalidValue
from larl.simulation.result import Result
from larl.simulation.result_files import load
from larl.simulation.study import Study


def total_steps(studies: dict[str, Study]) -> int:
    """Return the number of steps that all studies simulate."""
    return sum(
        len(study.worlds) * len(study.policies) * study.trials * (study.units or 1) * study.horizon
        for study in studies.values()
    )


def run_cached(
    studies: dict[str, Study], folder: Path, bar: Progress, threads: int | None, *, totals_only: bool = False
) -> dict[str, Result]:
    """Return the result of every study, from `folder` if it has a file with the same digest.

    With `totals_only` a result has each trial's total regret from t = k, not the single steps.
    """
    results = {}
    for name, study in studies.items():
        path, digest = folder / f"{name}.nc", study.digest() + ("-totals" if totals_only else "")
        result = _load_cached(path, digest)
        if result is None:
            bar.title = name
            result = study.run(threads=threads, progress=bar)
            if totals_only:
                result = Result(result.total("k").to_dataset().assign_attrs(result.data.attrs))
            result.data.attrs["key"] = digest
            result.save(path)
        else:
            bar.advance_untimed(total_steps({name: study}))
        results[name] = result
    return results


def _load_cached(path: Path, digest: str) -> Result | None:
    """Return the result in a file, or None if the file is missing, damaged or of another digest."""
    if not path.is_file():
        return None
    try:
        result = load(path)
    except InvalidValue:
        return None
    return result if result.data.attrs.get("key") == digest else None
