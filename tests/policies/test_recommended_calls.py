"""The calls that the tables of README and docs/which-policy.md recommend are right for rewards with any offset."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import larl
from tests.diagnosis.logs import constant_means

ROOT = Path(__file__).parents[2]
CALL = re.compile(r"`(?:larl\.)?(\w+)(\((?:[^()`]|\([^()`]*\))*\))`")


def rows(name: str) -> list[str]:
    """Return the rows of the table of policies."""
    text = (ROOT / name).read_text(encoding="utf-8")
    table = re.search(r"^\| (?:you have \| use|your case \| use \| because) \|\n(?:\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    return table[0].splitlines()[2:]


def calls(name: str) -> list[tuple[str, str, str]]:
    """Return row, class and arguments of every recommended policy."""
    recommended = [(row, row.split(" | ")[1]) for row in rows(name)]
    return [(row, *call) for row, cell in recommended for call in CALL.findall(cell) if call[0] != "Cohort"]


@pytest.mark.parametrize("name", ["README.md", "docs/which-policy.md"])
def test_a_policy_that_assumes_an_origin_or_a_unit_is_shown_with_the_setting_for_it(name):
    found = calls(name)
    assert len(found) > 12
    for row, kind, arguments in found:
        defaults = {item.name: item.default for item in fields(getattr(larl, kind))}
        if defaults.get("standardise") is False:
            assert "standardise=True" in arguments, row
        if "prior_sd" in defaults and "standardise" not in defaults:
            assert "prior_sd" in arguments, row
        if "reward_range" in defaults and "binary" not in row:
            assert "reward_range" in arguments, row


@pytest.mark.parametrize("name", ["README.md", "docs/which-policy.md"])
@pytest.mark.parametrize("offset", [-8.0, 0.0, 8.0])
def test_policies_for_constant_means_find_the_better_arm_at_any_offset(name, offset):
    stationary = [
        (kind, arguments) for row, kind, arguments in calls(name) if re.match(r"\| means (that )?do not", row)
    ]
    policies = {
        kind: eval(f"larl.{kind}{arguments}", {"larl": larl}) for kind, arguments in stationary if kind != "Exp3"
    }
    assert len(policies) == 2
    world = constant_means(offset, offset + 2.0)
    result = larl.compare(policies, world, horizon=300, trials=20, seed=1, progress=False)
    for policy in policies:
        assert np.mean(np.asarray(result.arm.sel(policy=policy)) == 1) > 0.95, policy


def test_without_these_settings_the_worse_arm_is_played_as_the_documents_say():
    policies = {"UCB": larl.UCB(), "Thompson": larl.ThompsonSampling()}
    result = larl.compare(policies, constant_means(8.0, 10.0), horizon=300, trials=20, seed=1, progress=False)
    worse = {policy: np.mean(np.asarray(result.arm.sel(policy=policy)) == 0) for policy in policies}
    assert worse["UCB"] == 1.0
    assert 0.3 < worse["Thompson"] < 0.7
