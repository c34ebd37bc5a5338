"""What is mutated: files of agents, cohorts, stores and results, and snapshots; how each is read and then used."""

import base64
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import larl
from larl.live import files, snapshots
from larl.policies import Policy
from larl.simulation import netcdf, store
from larl.simulation.result_checks import checksum
from larl.simulation.study import Study
from tests.conftest import SPECS, THREE_ARMS, world_of
from tests.live.fuzz_mutations import mutate, mutate_numbers

STEPS = 20  # decisions after a file was read
CLEAN = (larl.InvalidFile, larl.InvalidValue, larl.PolicyError)


class Target(NamedTuple):
    """A kind of file: `try_one(folder, rng)` mutates one, uses it, and returns whether it was refused."""

    name: str
    try_one: Callable[[Path, Random], bool]


def targets() -> list[Target]:
    """All targets: an agent for every policy, cohorts, stores and results."""
    agents = [spec for spec in SPECS if not isinstance(spec, larl.DynamicOracle)]
    found = [Target(f"agent {spec}", _live(_agent_document, spec, "agent")) for spec in (*agents, CONTEXTUAL)]
    found += [
        Target(f"cohort {spec}, {pooling}", _live(_cohort_document, (spec, pooling), "cohort"))
        for spec in (larl.LARL(1), larl.UCB(standardise=True), larl.LARL(1, standardise=True))
        for pooling in ("none", "full", "partial")
    ]
    found += [Target(f"snapshot {spec}", _snapshot(spec, None)) for spec in SNAPSHOTS]
    found += [
        Target(f"snapshot LARL(s=1), {pooling}", _snapshot(larl.LARL(1), pooling)) for pooling in ("full", "partial")
    ]
    found += [Target(f"store {keep}", _store(keep)) for keep in ("all", "summary")]
    return found + [Target(f"result {name}", _result(name)) for name in RESULTS]


CONTEXTUAL = larl.LARL(1, context=3)
SNAPSHOTS = [larl.LARL(1), larl.UCB(standardise=True), larl.SharedLARL(2, window=15, modes=2), larl.Random()]


def _agent_document(spec: Policy) -> dict[str, Any]:
    horizon, world = (None, None) if spec == CONTEXTUAL else (60, world_of(spec))
    agent = larl.Agent(spec, 3, seed=9, min_probability=0.1, max_delay=7, horizon=horizon, world=world)
    context, available = [0.5] * agent._context_size, (None, None, None, [])
    for t in range(45):
        decision = agent.decide(available[t % 4], context=context or None)
        if t % 3 and decision.arm is not None:
            agent.observe(decision, float(t % 5) - 2.0)
    return {"format": "larl.agent", "schema": files.SCHEMA, **agent.pack()}


def _cohort_document(given: tuple[Policy, str]) -> dict[str, Any]:
    spec, pooling = given
    cohort = larl.Cohort(spec, ["a", "b"], seed=9, pooling=pooling, min_probability=0.1, max_delay=4)
    for i in range(150):
        decision = cohort.decide("xyz"[i % 3] if i > 40 else "xy"[i % 2])
        if i % 4:
            cohort.observe(decision, float(i % 5) - 2.0)
    return {"format": "larl.cohort", "schema": files.SCHEMA, **cohort.pack()}


def _live(make: Callable[[Any], dict[str, Any]], given: Any, kind: str) -> Callable[[Path, Random], bool]:
    original = cache(lambda: json.loads(json.dumps(make(given))))

    def try_one(folder: Path, rng: Random) -> bool:
        document, note = mutate(original(), rng)
        document["digest"] = files.digest(document)
        path = folder / "mutated.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        (folder / "note").write_text(note, encoding="utf-8")
        try:
            loaded: Any = larl.Agent.load(path) if kind == "agent" else larl.Cohort.load(path)
        except larl.InvalidFile:
            return True
        try:
            _play_on(loaded)
            loaded.save(path)
        except CLEAN:
            return False
        return False

    return try_one


def _snapshot(spec: Policy, pooling: str | None) -> Callable[[Path, Random], bool]:
    settings: dict[str, Any] = {"seed": 9, "min_probability": 0.1, "max_delay": 5}

    def new() -> Any:
        return larl.Agent(spec, 3, **settings) if pooling is None else larl.Cohort(spec, 3, pooling=pooling, **settings)

    @cache
    def original() -> dict[str, Any]:
        agent = new()
        for t in range(130):
            decision = agent.decide(*([] if pooling is None else ["xyz"[t % 3]]))
            if t % 4:
                agent.observe(decision, float(t % 5) - 2.0)
        data = snapshots.dump(agent)
        end = 4 + int.from_bytes(data[:4], "little")
        values = json.loads(data[4:end])
        arrays = list(snapshots._decode_all(values.pop("arrays"), data, end))
        return {"values": values, "arrays": {str(i): files._pack_array(array) for i, array in enumerate(arrays)}}

    def try_one(folder: Path, rng: Random) -> bool:
        document, note = mutate(original(), rng)
        (folder / "note").write_text(note, encoding="utf-8")
        agent = new()
        try:
            pieces = [base64.b64decode(array["data"]) for array in document["arrays"].values()]
            kinds = [[array["type"], array["shape"]] for array in document["arrays"].values()]
            kinds = [[*kind, len(piece)] for kind, piece in zip(kinds, pieces, strict=True)]
            header = json.dumps(document["values"] | {"arrays": kinds}).encode()
        except (AttributeError, KeyError, TypeError, ValueError):
            return True  # it cannot be written as a snapshot
        try:
            snapshots.restore(agent, b"".join([len(header).to_bytes(4, "little"), header, *pieces]))
        except files.USE_ERRORS:  # the service rebuilds the agent from the journal, whatever the reason
            return True
        try:
            _play_on(agent)
        except CLEAN:
            return False
        return False

    return try_one


def _play_on(loaded: Any) -> None:
    """Decide, observe in time and late, and correct a reward."""
    is_cohort, context = isinstance(loaded, larl.Cohort), [0.25] * loaded._context_size or None
    decisions: list[Any] = []
    for t in range(STEPS):
        unit = [(*loaded.units, "new")[t % (len(loaded.units) + 1)]] if is_cohort else []
        decisions.append(loaded.decide(*unit, context=context))
        if t % 3 != 1:
            loaded.observe(decisions[-1], 0.5 * t)
        if t % 4 == 3:
            loaded.observe(decisions[-3], -1.0)
    if not is_cohort:
        for t in range(max(loaded.t - STEPS - 3, 0), loaded.t - STEPS):
            loaded.observe(loaded._id(t), 2.0, arm=loaded.arms[0])


def _study(keep: str) -> Study:
    return Study({"w": THREE_ARMS}, {"UCB": larl.UCB()}, horizon=12, trials=3, seed=1, keep=keep)


def _store(keep: str) -> Callable[[Path, Random], bool]:
    expected = cache(lambda: _study(keep).run(progress=False).total().values)

    def try_one(folder: Path, rng: Random) -> bool:
        place = folder / f"store-{keep}"
        _study(keep).run(store=place, progress=False, threads=1)
        path = sorted((place / "blocks").iterdir())[0]
        manifest = (place / "manifest.json").read_text()
        with np.load(path) as file:
            arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        note = _mutate_arrays(arrays, rng)
        about["sha256"] = store._checksum(about["key"], arrays)
        if rng.random() < 0.3:
            about, note = mutate(about, rng)
        np.savez(path, **{"about": np.array(json.dumps(about))} | arrays)
        if rng.random() < 0.2:
            changed, note = mutate(json.loads(manifest), rng)
            (place / "manifest.json").write_text(json.dumps(changed))
        (folder / "note").write_text(note, encoding="utf-8")
        try:
            total = _study(keep).run(store=place, progress=False, threads=1).total().values
        except CLEAN:
            return True
        finally:
            (place / "manifest.json").write_text(manifest)
            path.unlink(missing_ok=True)
        return bool(np.array_equal(total, expected()))

    return try_one


def _mutate_arrays(arrays: dict[str, Any], rng: Random) -> str:
    name = rng.choice(sorted(arrays))
    kind = rng.randrange(6)
    if kind == 0:
        arrays[name] = arrays[name].astype(rng.choice(("f4", "i8", "i2", "?", "U3", "u1", "f8")))
    elif kind == 1:
        arrays[name] = arrays[name][rng.choice((slice(1, None), slice(0, 0), (slice(None), slice(1, None)), 0))]
    elif kind == 2:
        arrays[name] = np.concatenate([arrays[name]] * 3, axis=rng.choice((0, -1)))
    elif kind == 3:
        arrays[rng.choice(("about2", "sums", "regret"))] = arrays.pop(name)
    else:
        arrays[name] = arrays[name].copy()
        return f"{name}: {mutate_numbers(arrays[name], rng)}"
    return f"{name}: {arrays.get(name, np.zeros(0)).dtype} of another kind, shape or name"


RESULTS: dict[str, dict[str, Any]] = {
    "all": {"keep": "all"},
    "summary": {"keep": "summary"},
    "worlds": {"keep": "all", "worlds": 2},
    "units": {"keep": "all", "units": 2},
}


@cache
def _made_result(name: str) -> Any:
    settings = dict(RESULTS[name])
    world = {"a": THREE_ARMS, "b": THREE_ARMS} if settings.pop("worlds", 0) else THREE_ARMS
    return larl.compare({"UCB": larl.UCB(), "random": larl.Random()}, world, horizon=9, trials=4, **settings)


def _result(name: str) -> Callable[[Path, Random], bool]:
    def try_one(folder: Path, rng: Random) -> bool:
        path = folder / "mutated.nc"
        data = _made_result(name).data.copy(deep=True)
        content, note = None, ""
        try:
            data, note = _mutate_dataset(data, rng)
            data = data.assign_attrs(format=netcdf.FORMAT, sha256=checksum(data))
            integers = [each for each in data.variables if data[each].dtype == np.int64]
            encoding = {each: {"dtype": np.int32} for each in integers}
            data.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT", encoding=encoding)
        except Exception:  # the mutated dataset cannot be written: damage the file instead
            content = bytearray(_made_result(name).save(path).read_bytes())
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            note = "one bit"
        (folder / "note").write_text(note, encoding="utf-8")
        try:
            result = larl.load(path)
        except larl.InvalidValue:
            return True
        assert content is None or result.data.identical(_made_result(name).data)
        result.summary()
        assert repr(result)
        result.save(folder / "again.nc")
        larl.load(folder / "again.nc")
        return False

    return try_one


def _mutate_dataset(data: xr.Dataset, rng: Random) -> tuple[xr.Dataset, str]:
    kind, name = rng.randrange(9), rng.choice(sorted(map(str, data.variables)))
    if kind == 0:
        return data.drop_vars(name), f"without {name}"
    if kind == 1:
        return data.rename({name: "other"}), f"{name} renamed"
    if kind == 2:
        return data.isel({rng.choice(sorted(map(str, data.dims))): slice(0, rng.choice((0, 1)))}), "a short axis"
    if kind == 3:
        return data.astype(rng.choice(("f4", "i4", "U3"))), "another type"
    if kind == 4:
        return data.transpose(*sorted(map(str, data.dims), reverse=True)), "transposed"
    if kind == 5:
        return data.expand_dims("extra"), "another axis"
    if kind == 6 and data[name].dtype.kind in "if" and data[name].ndim:
        values = data[name].values.copy()
        note = mutate_numbers(values, rng)
        return data.assign({name: (data[name].dims, values)}), f"{name}: {note}"
    key = rng.choice(sorted(data.attrs))
    text = data.attrs[key]
    if key in ("policies", "worlds"):
        changed, note = mutate(json.loads(text), rng)
        return data.assign_attrs({key: json.dumps(changed)}), f"{key}: {note}"
    return data.assign_attrs({key: rng.choice(("", "x", 3, 1.5, "-1", text + "0"))}), f"{key} changed"
