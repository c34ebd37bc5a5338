"""Running studies so that what is finished stays finished: one file a study, under a key of all that decides it."""

from pathlib import Path

from larl._core.progress import Progress
from larl._core.validation import InvalidValue
from larl.simulation.result import Result
from larl.simulation.result_files import load
from larl.simulation.study import Study


def key(study: Study) -> str:
    """A digest of everything a study's result depends on, the code included."""
    return study.digest()[:16]


def steps(studies: dict[str, Study]) -> int:
    """How many steps they will play in all."""
    return sum(
        len(one.worlds) * len(one.policies) * one.trials * (one.units or 1) * one.horizon for one in studies.values()
    )


def run(
    studies: dict[str, Study], folder: Path, bar: Progress, threads: int | None, *, totals: bool = False
) -> dict[str, Result]:
    """The result of every study; what an earlier run left in `folder` under the same key is not run again.

    With `totals` only each trial's total regret from t = k is kept, not the single steps.
    """
    results = {}
    for name, study in studies.items():
        path, wanted = folder / f"{name}.nc", key(study) + ("-totals" if totals else "")
        found = _finished(path, wanted)
        if found is None:
            bar.title = name
            found = study.run(threads=threads, progress=bar)
            if totals:
                found = Result(found.total("k").to_dataset().assign_attrs(found.data.attrs))
            found.data.attrs["key"] = wanted
            found.save(path)
        else:
            bar.advance(steps({name: study}))
        results[name] = found
    return results


def _finished(path: Path, wanted: str) -> Result | None:
    if not path.is_file():
        return None
    try:
        found = load(path)
    except InvalidValue:
        return None
    return found if found.data.attrs.get("key") == wanted else None
