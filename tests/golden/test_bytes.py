"""The present code writes, from the same values, the very bytes that are stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.formats import FORMATS
from tests.golden.machine import arithmetic
from tests.golden.make import STORED
from tests.golden.text import items_in

# Formats that follow from what is declared, not from training: the same bits on every machine.
DECLARED = ("schemas", "rosters", "limits", "keys", "labels")


def changes(folder: Path, made: dict[str, bytes]) -> list[str]:
    """Which stored files the code would write otherwise, and where they first differ."""
    stored = {file.name: file.read_bytes() for file in folder.iterdir()}
    found = [f"{name} is not stored" for name in sorted(set(made) - set(stored))]
    found += [f"{name} is not written any more" for name in sorted(set(stored) - set(made))]
    for name in sorted(set(made) & set(stored)):
        if made[name] != stored[name] and not name.endswith(".sqlite"):
            found.append(f"{name}: {_first_difference(name, stored[name], made[name])}")
    return found


def _first_difference(name: str, stored: bytes, made: bytes) -> str:
    if name.endswith(".txt"):
        pairs = zip(items_in(stored), items_in(made), strict=False)
        for (_, before), (item, now) in pairs:
            if before != now:
                return f"{item}, {_first_difference('', before, now)}"
        return "another number of messages"
    at = next((i for i, (a, b) in enumerate(zip(stored, made, strict=False)) if a != b), -1)
    start = max(0, at - 40)
    return f"from byte {at}: {stored[start : at + 40]!r} became {made[start : at + 40]!r}"


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_values_give_the_stored_bytes(name: str) -> None:
    made_on = json.loads((STORED / "machine.json").read_text())
    if name not in DECLARED and made_on != arithmetic():
        pytest.skip("training gives other last bits here than where the files were made")
    make, number = FORMATS[name]
    found = changes(STORED / name, make())
    assert not found, (
        f"the format of {name} changed, so whoever has such a file or speaks to an older version "
        f"is affected: {'; '.join(found[:5])} ({len(found)} files in all). If that is meant, raise "
        f"{number}, read older ones or refuse them by number, say so in CHANGELOG, and run "
        f"`python -m tests.golden.make`. If it is not, undo it."
    )


def test_a_changed_byte_is_found_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"format = 1\n")
    (tmp_path / "gone.toml").write_bytes(b"format = 1\n")
    found = changes(tmp_path, {"a.toml": b"format = 2\n", "new.toml": b""})
    assert found == [
        "new.toml is not stored",
        "gone.toml is not written any more",
        "a.toml: from byte 9: b'format = 1\\n' became b'format = 2\\n'",
    ]
