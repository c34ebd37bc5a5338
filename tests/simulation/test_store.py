"""Stores: whole or absent, checked when read, refused to another study."""

import json
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl.simulation.store import Store
from tests.simulation.test_tasks import BLOCK

STUDY = {"policies": {"p": {"policy": "LARL", "s": 1}}, "seed": 0}


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store", STUDY)


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_what_was_put_is_what_one_gets(store, keep):
    block = replace(BLOCK, keep=keep)
    arrays = block.play()
    assert store.get(block) is None
    store.put(block, arrays)
    found = store.get(block)
    assert {name: (each.dtype, each.tobytes()) for name, each in found.items()} == {
        name: (each.dtype, each.tobytes()) for name, each in arrays.items()
    }


def test_the_same_block_is_the_same_file(store):
    first = store.put(BLOCK, BLOCK.play()).read_bytes()
    assert store.put(BLOCK, BLOCK.play()).read_bytes() == first
    assert [path.name for path in (store.folder / "blocks").iterdir()] == [f"{BLOCK.key()}.npz"]


def test_every_cut_and_every_changed_byte_of_values_is_noticed(store):
    path = store.put(BLOCK, BLOCK.play())
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        assert store.get(BLOCK) is None
    for at in range(0, len(whole), 61):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = store.get(BLOCK)
        assert found is None or all(np.array_equal(found[name], each) for name, each in BLOCK.play().items())


def test_values_edited_with_care_are_noticed(store):
    path = store.put(BLOCK, BLOCK.play())
    with np.load(path) as file:
        members = dict(file)
    members["regret"][0, 0] += 1.0
    np.savez(path, **members)
    assert store.get(BLOCK) is None


def test_a_block_under_another_name_is_noticed(store):
    other = replace(BLOCK, seed=99)
    store.put(BLOCK, BLOCK.play()).rename(store.path(other))
    assert store.get(other) is None


def test_the_manifest_says_what_it_is(store):
    manifest = json.loads((store.folder / "manifest.json").read_text())
    assert manifest["study"] == STUDY
    assert manifest["token"] == store.token
    assert Store.open(store.folder, STUDY) == store
    assert store.is_here()


def test_another_study_is_refused_with_key_old_and_new(store):
    changed = {"policies": {"p": {"policy": "LARL", "s": 7}}, "seed": 0, "keep": "all"}
    with pytest.raises(larl.InvalidValue) as refusal:
        Store.open(store.folder, changed)
    assert "study.policies.p.s = 7" in str(refusal.value)
    assert "1, with which this store was begun" in str(refusal.value)
    assert "study.keep: None → 'all'" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_a_broken_manifest_is_refused(store, text):
    (store.folder / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(larl.InvalidValue, match="manifest"):
        Store.open(store.folder, STUDY)
    assert not store.is_here()


def test_a_folder_of_the_same_path_elsewhere_is_not_here(store):
    assert not replace(store, token="another").is_here()
    assert not replace(store, folder=store.folder / "nowhere").is_here()
