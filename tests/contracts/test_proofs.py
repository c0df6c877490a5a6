"""Proofs are complete: every query, mechanism and accountant has a page that cites what exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from hedgerow.model.trust import TRUSTS
from hedgerow.privacy.accounting.accountant import Accountant
from hedgerow.privacy.accounting.budget import PlanBudget
from hedgerow.privacy.noise.randomisers import MECHANISMS, rule_for
from hedgerow.queries import QUERIES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "proofs"
INDEX = FOLDER / "index.md"
PAGES = sorted(set(FOLDER.rglob("*.md")) - {INDEX})
CITED = re.compile(r"`((?:src/hedgerow|tests)/[\w/]+\.py)(?:::([\w.]+))?`")
SECTIONS = (
    "Claim", "Proof", "Grid and rounding", "Composition", "Where the code keeps it",
    "Which tests attack it",
)  # fmt: skip
NO_DRAWS = {"secret_randomness.py", "__init__.py"}  # no epsilon rests on these


def citations(path: Path) -> set[tuple[str, str]]:
    return set(CITED.findall(path.read_text(encoding="utf-8")))


@cache
def names_of(path: Path) -> set[str]:
    """Functions, classes and constants of a file, those of classes with a dot."""
    names: set[str] = set()

    def look(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(before + node.name)
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{before}{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else []
            names.update(before + t.id for t in targets if isinstance(t, ast.Name))
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(before + node.target.id)

    look(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return names


def missing(path: str, name: str) -> bool:
    file = ROOT / path
    return not file.is_file() or bool(name and name not in names_of(file))


def cited_anywhere() -> set[tuple[str, str]]:
    return {one for page in PAGES for one in citations(page)}


def home_of(cls: type) -> tuple[str, str]:
    return f"src/{cls.__module__.replace('.', '/')}.py", cls.__name__


def is_cited(cls: type) -> bool:
    file, name = home_of(cls)
    return any(f == file and n.partition(".")[0] == name for f, n in cited_anywhere())


@pytest.mark.parametrize("kind", sorted(QUERIES))
def test_every_query_has_a_page_about_its_own_bound_and_code(kind: str) -> None:
    page = FOLDER / f"{kind}.md"
    assert page.is_file(), f"write docs/proofs/{kind}.md"
    file, name = home_of(QUERIES[kind])
    cited = citations(page)
    assert {(file, f"{name}.sensitivity"), (file, f"{name}.answer")} <= cited
    assert f"`{kind}`" in page.read_text(encoding="utf-8").splitlines()[0]


def test_everything_that_draws_noise_has_a_proof() -> None:
    noise = ROOT / "src" / "hedgerow" / "privacy" / "noise"
    files = {f"src/hedgerow/privacy/noise/{f.name}" for f in noise.glob("*.py")} - {
        f"src/hedgerow/privacy/noise/{name}" for name in NO_DRAWS
    }
    cited = cited_anywhere()
    assert files <= {file for file, _ in cited}
    mechanisms = "src/hedgerow/privacy/noise/mechanisms.py"
    drawing = {"add_gaussian", "add_laplace", "choose", "perturb", "randomised_labels"}
    assert {(mechanisms, name) for name in drawing} <= cited
    # What the source of noise can draw is what somebody proved.
    methods = {n for n in names_of(ROOT / mechanisms) if n.startswith("SecureSource.")}
    proven = {"SecureSource.name", "SecureSource.below"}  # `below` is `bernoulli.Sampler.below`
    assert methods - proven <= {name for file, name in cited if file == mechanisms}
    for mechanism in MECHANISMS:
        assert is_cited(type(rule_for(mechanism, 1.0))), mechanism


def subclasses(cls: type) -> set[type]:
    below = {one for one in cls.__subclasses__() if one.__module__.startswith("hedgerow.")}
    return below.union(*(subclasses(one) for one in below))


def test_every_accountant_budget_and_trust_has_a_proof() -> None:
    found = subclasses(Accountant) | subclasses(PlanBudget) | {type(t) for t in TRUSTS.values()}
    assert len(found) >= 7
    assert [cls.__name__ for cls in found if not is_cited(cls)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_has_every_part_and_cites_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS
    by_name = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert all(part.strip() for part in by_name.values())
    code = CITED.findall(by_name["Where the code keeps it"])
    tests = CITED.findall(by_name["Which tests attack it"])
    assert any(file.startswith("src/") and name for file, name in code)
    assert any(file.startswith("tests/") and "test_" in name for file, name in tests)
    assert [one for one in citations(page) if missing(*one)] == []


def test_no_page_is_an_orphan() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", INDEX.read_text(encoding="utf-8")))
    assert linked == {page.name for page in PAGES}
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    shown = re.findall(r"proofs/([\w-]+\.md)$", text.split("\nnav:")[1], re.MULTILINE)
    assert sorted(shown) == sorted(page.name for page in [INDEX, *PAGES])


def test_a_citation_of_nothing_is_found() -> None:
    assert missing("src/hedgerow/queries/label_sums.py", "LabelSums.sensitiveness")
    assert missing("tests/queries/test_no_such_file.py", "")
    assert not missing("src/hedgerow/queries/label_sums.py", "LabelSums.sensitivity")
