"""The map is true: package docstrings list their files, and the layers name every folder."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hedgerow"
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
_LINE = re.compile(r"^(\w+(?:\.py|/)) {2,}(\S.*)$", re.MULTILINE)
MOST_ENTRIES = 25  # side by side in the source folder: more is a wall, not a map


def entries(package: Path) -> set[str]:
    """Modules and folders of a package, as its docstring names them."""
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    return modules | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_package_lists_its_files(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    listed = [name for name, _ in _LINE.findall(docstring)]
    assert len(listed) == len(set(listed)), "a file is listed twice"
    assert set(listed) == entries(package), f"mend the docstring of {package.name}/__init__.py"


def test_the_source_folder_can_be_taken_in_at_a_glance() -> None:
    visible = [path for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(visible) <= MOST_ENTRIES


def test_every_folder_is_in_the_layers_but_testing() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = {
        module.strip().removeprefix("hedgerow.")
        for layer in contracts[0]["layers"]
        for module in layer.split("|")
    }
    shown = {name.rstrip("/").removesuffix(".py") for name in entries(SOURCE)}
    assert layers == shown - {"testing", "__main__"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside of functions count too: they are there to load late, not to hide a cycle."""
    graph = grimp.build_graph("hedgerow", exclude_type_checking_imports=True)
    left = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    while ends := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in ends}
    assert not left, f"these import each other, or what does: {', '.join(sorted(left))}"
