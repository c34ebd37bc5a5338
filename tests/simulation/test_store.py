"""Stores: a block is complete or absent, is checked when read, and belongs to one study."""

import json
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl.simulation.store import Store
from larl.simulation.tasks import run_block
from tests.simulation.test_tasks import BLOCK

STUDY = {"policies": {"p": {"policy": "LARL", "s": 1}}, "seed": 0}


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store", STUDY)


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_get_returns_what_put_wrote(store, keep):
    block = replace(BLOCK, keep=keep)
    arrays = run_block(block).arrays
    assert store.get(block) is None
    store.put(block, arrays)
    found = store.get(block)
    assert {name: (each.dtype, each.tobytes()) for name, each in found.items()} == {
        name: (each.dtype, each.tobytes()) for name, each in arrays.items()
    }


def test_same_block_gives_the_same_file(store):
    first = store.put(BLOCK, run_block(BLOCK).arrays).read_bytes()
    assert store.put(BLOCK, run_block(BLOCK).arrays).read_bytes() == first
    assert [path.name for path in (store.folder / "blocks").iterdir()] == [f"{BLOCK.key()}.npz"]


def test_truncated_files_and_changed_bytes_are_detected(store):
    path = store.put(BLOCK, run_block(BLOCK).arrays)
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        assert store.get(BLOCK) is None
    for at in range(0, len(content), 61):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        found = store.get(BLOCK)
        assert found is None or all(np.array_equal(found[name], each) for name, each in run_block(BLOCK).arrays.items())


def test_changed_values_in_a_valid_file_are_detected(store):
    path = store.put(BLOCK, run_block(BLOCK).arrays)
    with np.load(path) as file:
        members = dict(file)
    members["regret"][0, 0] += 1.0
    np.savez(path, **members)
    assert store.get(BLOCK) is None


def test_arrays_that_a_block_cannot_have_are_not_used(store):
    arrays = run_block(BLOCK).arrays
    for changed in (
        {"regret": np.full_like(arrays["regret"], np.inf)},
        {"regret": arrays["regret"][:, 1:]},
        {"regret": arrays["regret"].astype(np.float32)},
        {"arm": np.full_like(arrays["arm"], 99)},
        {"sums": arrays["regret"]},
    ):
        store.put(BLOCK, arrays | changed)
        assert store.get(BLOCK) is None
    store.put(BLOCK, arrays)
    assert store.get(BLOCK) is not None


def test_block_under_another_key_is_detected(store):
    other = replace(BLOCK, seed=99)
    store.put(BLOCK, run_block(BLOCK).arrays).rename(store.path(other))
    assert store.get(other) is None


def test_manifest_holds_study_and_token(store):
    manifest = json.loads((store.folder / "manifest.json").read_text())
    assert manifest["study"] == STUDY
    assert manifest["token"] == store.token
    assert Store.open(store.folder, STUDY) == store
    assert store.is_reachable()


def test_another_study_is_refused_with_key_old_and_new_value(store):
    changed = {"policies": {"p": {"policy": "LARL", "s": 7}}, "seed": 0, "keep": "all"}
    with pytest.raises(larl.InvalidValue) as refusal:
        Store.open(store.folder, changed)
    assert "study.policies.p.s = 7" in str(refusal.value)
    assert "1, with which this store was created" in str(refusal.value)
    assert "study.keep: None → 'all'" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_broken_manifest_is_refused(store, text):
    (store.folder / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(larl.InvalidValue, match="manifest"):
        Store.open(store.folder, STUDY)
    assert not store.is_reachable()


def test_folder_with_another_token_is_not_reachable(store):
    assert not replace(store, token="another").is_reachable()
    assert not replace(store, folder=store.folder / "nowhere").is_reachable()


def test_worker_that_cannot_reach_the_store_returns_its_arrays(tmp_path):
    store = Store.open(tmp_path, {})
    unreachable = Store(tmp_path / "not mounted", store.token)
    assert run_block(BLOCK, store).arrays is None
    assert store.get(BLOCK) is not None
    assert run_block(BLOCK, unreachable).arrays is not None
    assert not (tmp_path / "not mounted").exists()
