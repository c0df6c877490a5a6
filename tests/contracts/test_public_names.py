"""Public names: what `__all__` lists, the reference shows; nothing else, and no deeper path."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import hedgerow
from tests.contracts.test_imports import HEAVY, loaded_after

ROOT = Path(__file__).parents[2]
NAMESPACES = ("audit", "errors", "export", "inspection", "testing")
# These pages show how it works inside, so they import what is not public.
INSIDE = {"docs/methods.md", "docs/privacy.md", "docs/schema.md"}
RECIPE = "hedgerow.engines.nvflare.HedgerowRecipe"  # public, and importable with its extra alone
USERS = sorted(
    path
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "examples").rglob("*.py"),
    ]
    if str(path.relative_to(ROOT)) not in INSIDE and path.parent.name != "proofs"
)
_IMPORT = re.compile(r"^ *from (hedgerow[\w.]*) import ([\w, ]+)$", re.MULTILINE)


def public_names() -> list[str]:
    """Every public name by the path that users type."""
    names = [f"hedgerow.{n}" for n in hedgerow.__all__ if n not in (*NAMESPACES, "__version__")]
    for namespace in NAMESPACES:
        module = import_module(f"hedgerow.{namespace}")
        names += [f"{module.__name__}.{name}" for name in module.__all__]
    return names


def test_the_namespaces_are_public() -> None:
    assert hedgerow._NAMESPACES == NAMESPACES
    assert set(NAMESPACES) <= set(hedgerow.__all__)
    for namespace in NAMESPACES:
        assert getattr(hedgerow, namespace) is import_module(f"hedgerow.{namespace}")


def test_the_reference_shows_every_public_name_once_and_no_other() -> None:
    shown = Counter(
        name
        for path in (ROOT / "docs" / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    public = set(public_names())
    assert not public - set(shown), f"add ::: lines to docs/reference: {public - set(shown)}"
    assert not set(shown) - public, f"not in any __all__: {set(shown) - public}"
    assert not [name for name, times in shown.items() if times > 1]


def test_a_public_name_is_there_and_has_one_home() -> None:
    objects = {}
    for name in public_names():
        module, _, attribute = name.rpartition(".")
        value = getattr(import_module(module), attribute)
        assert value.__doc__, f"{name} has no docstring"
        assert id(value) not in objects, f"{name} is {objects[id(value)]} as well"
        objects[id(value)] = name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hedgerow.no_such_name  # type: ignore[attr-defined]


def test_dir_lists_the_public_names_and_loads_nothing() -> None:
    assert set(hedgerow.__all__) == set(dir(hedgerow))
    assert loaded_after("import hedgerow.errors") & set(HEAVY) == set()


def test_type_checkers_see_the_homes_that_python_uses() -> None:
    """Imports under TYPE_CHECKING against `_HOMES`: the one is for mypy, the other runs."""
    tree = ast.parse(Path(hedgerow.__file__).read_text(encoding="utf-8"))
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(checking.test) == "TYPE_CHECKING"
    imported = {}
    for line in checking.body:
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            assert alias.asname == alias.name, "without `as` the name is not exported"
            imported[alias.name] = line.module
    assert imported == {**hedgerow._HOMES, **dict.fromkeys(NAMESPACES, "hedgerow")}


@pytest.mark.parametrize("path", USERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_examples_import_public_names_alone(path: Path) -> None:
    public = {*public_names(), *(f"hedgerow.{name}" for name in NAMESPACES), RECIPE}
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        for name in names.split(", "):
            assert f"{module}.{name}" in public, f"{module}.{name} is not public"
