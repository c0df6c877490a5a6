"""Presets are what documents and records say they are."""

from __future__ import annotations

import re

from hedgerow.methods.registry import METHODS
from tests.record import blocks
from tests.record.blocks import ROOT


def test_the_preset_is_the_literal_form_with_the_floor_that_was_measured() -> None:
    preset, literal = (METHODS[name] for name in ("dp-tr-newton", "dp-tr-newton-literal"))
    changed = dict(blocks.result("maddock_floor")["chosen"]["settings"])
    assert changed == {"floor_deviations": 3.33}
    assert preset.settings({}) == literal.settings(changed)
    assert literal.settings({}).to_dict()["floor_deviations"] == 0
    assert (preset.queries, preset.uses) == (literal.queries, literal.uses)


def test_defaults_of_methods_that_the_page_of_settings_names_are_theirs() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    told = text.split("`dp-xgboost` uses its own")[1].split("The other")[0]
    own = METHODS["dp-xgboost"].settings({}).to_dict()
    pairs = [
        *re.findall(r"`(\w+)` \(([0-9.]+)\)", told),
        *re.findall(r"`(\w+)` (?:is )?([0-9.]+)[ ,]", told),
    ]
    assert len(pairs) >= 8
    for name, value in pairs:
        assert own[name] == float(value), name
    assert own["loss"] == "squared"
    assert "`loss` `squared`" in told
