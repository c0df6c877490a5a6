"""Documents stay true: blocks run, links lead somewhere, maps match the source."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from typer.testing import CliRunner

from hedgerow import kernels
from hedgerow.cli.app import app
from hedgerow.data.schema import Schema
from hedgerow.failpoints import FAIL_POINTS
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.losses import (
    TREE_UPDATES,
    Hazards,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
)
from hedgerow.model.statement import Statement
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.settings import DEFAULTS, Privacy
from hedgerow.protocol.messages import REFUSALS
from tests.contracts.test_map import entries

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hedgerow"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RUNNABLE = [ROOT / "README.md", *PAGES]
DOCUMENTS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *PAGES, *ROOT.glob("*/**/README.md")]
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}  # tests run side by side; waiting threads would starve
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """Fenced blocks of a document: language, text, and the line before the first of them."""
    text = path.read_text(encoding="utf-8")
    found = _BLOCK.finditer(text)
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in found]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = kernels.use_threads(1)
    yield
    kernels.use_threads(before)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment, with warnings as errors."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error", **ONE_THREAD}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_document_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__document__"}
    for language, text, line in blocks(path):
        if language == "python":
            code = compile("\n" * line + text, str(path), "exec")
            exec(code, namespace)  # noqa: S102
        elif language in ("console", "bash"):
            for command in re.findall(r"^\$ (hedgerow .*)$", text, re.MULTILINE):
                if path.name == "README.md":
                    done = run(shlex.split(command), tmp_path)
                    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                else:  # the same command in this process, which need not start anew
                    found = CliRunner().invoke(app, shlex.split(command)[1:])
                    assert found.exit_code == 0, f"{command}\n{found.output}{found.exception}"
    if path.name == "README.md":
        quoted = re.findall(r"^> (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        words = namespace["model"].statement_.words()
        assert " ".join(quoted).split() == words.split()


def test_the_readme_runs_python_and_commands() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "README.md")]
    assert languages.count("python") >= 2
    commands = re.findall(r"^\$ hedgerow (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"plan", "train", "predict", "evaluate", "statement", "ledger"} <= set(commands)


ELSEWHERE = ("notebooks", "higgs_over_nvflare")  # test_notebooks.py, engines/relays/test_stock.py
SCRIPTS = [folder for folder in EXAMPLES if folder.name not in ELSEWHERE]


@pytest.mark.parametrize("folder", SCRIPTS, ids=lambda path: path.name)
def test_an_example_runs_alone(folder: Path, tmp_path: Path) -> None:
    script = folder / "run.py"
    command = [sys.executable, str(script)]
    if not script.exists():
        command = ["bash", str(folder / "run.sh"), str(tmp_path / "out")]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epsilon = 1" in " ".join(done.stdout.split())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_local_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(target), f"{path.name}: no heading for {link}"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_navigation_of_the_site_names_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", text.split("\nnav:\n")[1], re.MULTILINE)
    own = [name for name in named if not name.startswith("repository/")]
    assert sorted(own) == sorted(str(path.relative_to(ROOT / "docs")) for path in PAGES)
    others = [name.removeprefix("repository/") for name in named if name not in own]
    assert others
    assert all((ROOT / name).is_file() for name in others)


def test_the_readme_leads_to_every_example() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(examples/(\w+)/README\.md\)", text))
    assert linked == {folder.name for folder in EXAMPLES}


def test_schemas_shown_in_documents_are_complete() -> None:
    shown = [text for lang, text, _ in blocks(ROOT / "docs" / "schema.md") if lang == "toml"]
    assert shown
    for text in shown:
        assert Schema.from_dict(tomllib.loads(text)).columns


def test_the_architecture_has_the_layers_of_the_import_contract() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = [layer.replace("hedgerow.", "") for layer in contracts[0]["layers"]]
    shown = [text for lang, text, _ in blocks(ROOT / "ARCHITECTURE.md") if lang == "text"]
    assert shown[0].split("\n")[:-1] == layers


def test_the_architecture_names_every_folder_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("| in `src/hedgerow` |")[1].split("\n\n")[0]
    named = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(entries(SOURCE))


@pytest.mark.parametrize(
    "name",
    [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        *(f"docs/{page}.md" for page in ("privacy", "default-method")),
    ],
)
def test_files_that_a_document_names_exist(name: str) -> None:
    """Paths in backticks, from the project's folder or from that of the source."""
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|md|toml))?)`", text)
    assert paths
    missing = [p for p in paths if not any((base / p).exists() for base in (ROOT, SOURCE))]
    assert not missing


def test_every_setting_is_documented_with_its_default() -> None:
    """Names and defaults of docs/settings.md against the source, both ways."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    shown = {name: default.strip().strip("`") for name, default, _ in found}
    expected = {}
    defaults = {**{field.name: field.default for field in fields(Privacy)}, **DEFAULTS}
    for name, default in defaults.items():
        expected[name] = "none" if default in (MISSING, "") else str(default)
    assert shown == expected
    assert all(len(meaning) > 15 for _, _, meaning in found)


def test_every_setting_of_a_vertical_run_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "vertical.md").read_text(encoding="utf-8")
    section = text.split("## Settings")[1].split("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    values = {**VerticalSettings().to_dict(), "active": "none"}
    assert {name: default.strip() for name, default, _ in found} == {
        name: str(value) for name, value in values.items()
    }
    assert all(len(meaning) > 10 for _, _, meaning in found)


def test_the_figures_of_many_rounds_are_those_of_the_result_file() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "rounds.json").read_text())
    text = (ROOT / "docs" / "default-method.md").read_text(encoding="utf-8")
    section = text.split("## Rounds")[1].split("\n## ")[0]
    shown = re.findall(r"^\| (\w+) \| ([+-].+) \| ([+-].+) \|$", section, re.MULTILINE)
    many = [one for one in results["cells"] if one["rounds_allowed"] == 200]
    assert len(shown) == len({one["table"] for one in many}) == 7
    for table, *cells in shown:
        for epsilon, cell in zip((1.0, 4.0), cells, strict=True):
            (one,) = [o for o in many if (o["table"], o["epsilon"]) == (table, epsilon)]
            told = f"{one['gain']:+.4f} ({one['error']:.4f}), {one['rounds']} rounds"
            assert cell == told.replace("0.", ".")
    fits = {(o["table"], o["epsilon"], o["rounds_allowed"]): o for o in results["cells"]}
    for what, low, high in (("cpu_seconds", 1.4, 11.5), ("bytes", 1.9, 11.5)):
        for table, epsilon in {(o["table"], o["epsilon"]) for o in many}:
            one, few = (fits[table, epsilon, rounds] for rounds in (200, 16))
            assert low <= one[what] / few[what] <= high
    assert not results["losses_beyond"]


def test_the_figures_of_weights_are_those_of_the_result_file() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "sample_weights.json").read_text())
    text = (ROOT / "docs" / "default-method.md").read_text(encoding="utf-8")
    section = text.split("## Weights of rows")[1].split("\n## ")[0]
    shown = re.findall(r"^\| [\d,]+ \| [\d.]+ \| (.+) \|$", section, re.MULTILINE)
    cells = [cell for line in shown for cell in line.split(" | ")]
    assert cells == [f"{one['auc']:.3f} (S {one['strength']:.0f})" for one in results["means"]]
    assert f"mean of {results['repeats']} fits" in section
    assert all(
        one["standard_error"] < (0.0165 if one["strength"] < 40 else 0.0035)
        for one in results["means"]
    )


def test_the_figures_of_times_to_an_event_are_those_of_the_result_file() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "survival.json").read_text())
    text = (ROOT / "docs" / "survival.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| ([\w-]+) \([\d,]+\) \| (.+) \|$", text, re.MULTILINE)
    assert [name for name, _ in shown] == list(dict.fromkeys(m["cohort"] for m in results["means"]))
    for name, line in shown:
        cells = [cell for cell in line.split(" | ") if cell != "-"]
        of = {m["model"]: m for m in results["means"] if m["cohort"] == name}
        order = ["gradient boosting", "XGBoost (Cox)", "Cox", "Kaplan-Meier"]
        order += [f"hedgerow, epsilon {epsilon}" for epsilon in ("0.1", "0.5", "1", "4")]
        found = [of[model] for model in order if model in of]
        assert cells == [f"{m['concordance']:.3f} ({m['integrated_brier']:.3f})" for m in found]
    assert f"mean of {results['splits']} splits" in text


def test_the_figures_of_counts_and_skewed_numbers_are_those_of_the_result_file() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "counts.json").read_text())
    text = (ROOT / "docs" / "counts.md").read_text(encoding="utf-8")
    of = {(m["table"], m["metric"], m["model"]): f"{m['mean']:.4g}" for m in results["means"]}
    own = {"deviance": "poisson", "pinball 0.9": "quantile", "absolute error": "huber"}
    shown = re.findall(r"^\| ([\w -]+), ([a-z 0.9]+) \| (\S+) \| (.+) \|$", text, re.MULTILINE)
    assert {(table, metric) for table, metric, *_ in shown} == {
        (table, metric) for table, metric, _ in of if metric in own
    }
    for table, metric, one, line in shown:
        assert one == of[table, metric, "one for all"]
        for epsilon, cell in zip(("0.5", "1", "4"), line.split(" | "), strict=True):
            losses = [own[metric], "squared", *(["shifted"] if metric == "pinball 0.9" else [])]
            figures = [of[table, metric, f"{loss}, epsilon {epsilon}"] for loss in losses]
            assert re.findall(r"[\d.]+(?:e\+\d+)?", cell) == figures
    assert f"mean of {results['splits']} splits" in text


def test_the_figures_of_the_vertical_page_are_those_of_the_result_file() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "vertical_audit.json").read_text())
    found, shares = results["datasets"]["credit1_full"], ("0.1", "0.5", "0.9", "0.95")
    smm = {way: [found[way][share] for share in shares] for way in ("smm-1", "smm-2")}
    runs = [found["labels from SMM-2 with 32 bins"][share] for share in shares]
    noisy = found["labels under noise, by epsilon of a tree"]
    expected = {
        "splits from smm-1, one tree, rounded": [
            one["splits, 1 trees"]["rounding"] for one in smm["smm-1"]
        ],
        "splits from smm-1, one tree, projections": [
            one["splits, 1 trees"]["best"] for one in smm["smm-1"]
        ],
        "splits from smm-1, 8 trees": [one["splits, 8 trees"]["best"] for one in smm["smm-1"]],
        "splits from smm-1, 20 trees": [one["splits, 20 trees"]["best"] for one in smm["smm-1"]],
        "labels from smm-1's vectors, two levels": [
            one["labels from vectors"]["best"] for one in smm["smm-1"]
        ],
        "labels from smm-2, 32 bins, one answer": [one["1"] for one in runs],
        "labels from smm-2, 32 bins, two answers": [one["2"] for one in runs],
        "rows whose bin is found in smm-2's vectors": [
            one["bins from vectors"]["best"] for one in smm["smm-2"]
        ],
        **{
            f"{mechanism}, each of 20 trees": [one["accuracy"] for one in by_epsilon.values()]
            for mechanism, by_epsilon in noisy.items()
        },
        "labels randomised once, in all": [
            one["accuracy"] for one in found["labels randomised once"].values()
        ],
    }
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "vertical.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    shown = {row[0]: row[-len(expected[row[0]]) :] for row in rows if row[0] in expected}
    assert shown == {name: [f"{x:.3f}" for x in values] for name, values in expected.items()}


def test_the_threat_model_lists_every_refusal_and_fail_point() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    table = text.split("| word | meaning |")[1].split("\n\n")[0]
    words = [w for row in table.splitlines()[2:] for w in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(words) == sorted(REFUSALS)
    places = text.split("Places: ")[1].split(". ")[0]
    assert tuple(re.findall(r"`([a-z-]+)`", places)) == FAIL_POINTS


def test_the_bounds_of_the_proofs_are_those_of_the_source() -> None:
    text = (ROOT / "docs" / "proofs" / "row-bounds.md").read_text(encoding="utf-8")
    table = text.split("| loss | update |")[1].split("\n\n")[0]
    losses: dict[str, Loss] = {
        "logistic": Logistic(), "softmax": Softmax(3), "squared": Squared(), "hazards": Hazards(5),
        "periods": Hazards(5, 2), "poisson": Poisson(20), "quantile": Quantile(5000),
        "huber": Huber(1 << 19),
    }  # fmt: skip
    name = ""
    seen = set()
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        name = cells[0].partition(",")[0] or name
        for update in TREE_UPDATES if cells[1] == "all three" else (cells[1],):
            bound = losses[name].bound(update)
            shown = cells[5].replace("sqrt 2", "sqrt(2)")
            squared = float(shown[5:-1]) if "sqrt" in shown else float(shown) ** 2
            assert bound.l2**2 == pytest.approx(squared, rel=1e-12)
            assert bool(bound.second) == bool(cells[4])
            if bound.second:
                scale = {"1/2": 0.5, "sqrt(1/2)": 0.5**0.5}.get(cells[4]) or float(cells[4])
                assert bound.second_scale == pytest.approx(scale, rel=1e-12)
            seen.add((name, update))
    assert len(seen) == len(losses) * len(TREE_UPDATES) - 2  # two have no Newton update


def test_epsilons_of_other_changes_are_computed() -> None:
    def said(epsilon: float) -> Statement:
        mu = mu_of(epsilon, 1e-6, 10_000)
        return Statement("epsilon-delta", epsilon, 1e-6, "coordinator", mu=mu)

    def table(page: str, head: str) -> list[list[str]]:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        lines = text.split(head)[1].split("\n\n")[0].splitlines()[2:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    told = [row[1:3] for row in table("promise.md", "| if the table differs by |")]
    assert told == [list(change.cells()[1:]) for change in said(1.0).changes()]
    rows = table("privacy.md", "| epsilon, delta = 1e-6 |")
    assert len(rows) == 5
    for epsilon, mu, *cells in rows:
        one = said(float(epsilon))
        added, replaced, _, five, _ = (list(change.cells()[1:]) for change in one.changes())
        assert mu == f"{one.mu:.3f}"
        wanted = [added[1], *replaced, *five]
        assert [c.rstrip(" %") for c in cells] == [
            f"{float(w):.2f}" if "%" not in w and float(w) < 10 else w.rstrip(" %") for w in wanted
        ]


@pytest.mark.parametrize(("page", "least"), [("README.md", 32), ("docs/accuracy.md", 66)])
def test_figures_of_accuracy_are_those_of_the_result_file(page: str, least: int) -> None:
    with (ROOT / "benchmarks" / "results" / "accuracy.json").open("rb") as file:
        entries = json.load(file)["results"]
    measure = {"abalone": "rmse", "california": "rmse", "covtype7": "accuracy"}

    def figure(dataset: str, method: str, epsilon: float | None) -> str:
        key = (dataset, method, epsilon)
        found = [e for e in entries if (e["dataset"], e["method"], e["epsilon"]) == key]
        return f"{mean(found[0][measure.get(dataset, 'auc')]):.3f}" if found else "-"

    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if "|" in line]
    titles = {
        "auto, epsilon 0.01": ("auto", 0.01), "DP-EBM, epsilon 0.01": ("interpret", 0.01),
        "auto, epsilon 0.1": ("auto", 0.1), "auto, epsilon 1": ("auto", 1.0),
        "DP-EBM, epsilon 0.1": ("interpret", 0.1), "DP-EBM, epsilon 1": ("interpret", 1.0),
        "XGBoost, not private": ("xgboost", None),
    }  # fmt: skip
    checked = 0
    for start, row in enumerate(cells):
        if row[0] not in ("test AUC", "others"):
            continue
        for line in cells[start + 2 :]:
            if line[0] not in titles or len(line) != len(row):
                break
            for name, cell in zip(row[1:], line[1:], strict=True):
                assert cell == figure(name.partition(",")[0], *titles[line[0]]), (line[0], name)
                checked += 1
    assert checked >= least


def test_the_figures_of_the_audit_page_are_those_of_the_result_files() -> None:
    folder, text = ROOT / "benchmarks" / "results", (ROOT / "docs" / "audit.md").read_text()
    audits = json.loads((folder / "one_run_audit.json").read_text())["summary"]
    for name, found in audits.items():
        table, epsilon, defect = name.split(", ")
        if defect != "none":
            assert found["reported_as_violation"] == found["runs"]
            continue
        assert found["runs"] == found["estimate_within_factor_two"] == 100
        start = f"| {table} | {epsilon.split()[1]} | {found['claimed_mu']:.4f} | "
        line = next(line for line in text.splitlines() if line.startswith(start))
        assert line.endswith(f"| {found['bound_above_claim']} of 100 |")
        assert f"| {found['median_lower_mu']:.4f} | {found['median_any_lower_mu']:.3f} |" in line
    rebuilt = json.loads((folder / "reconstruction.json").read_text())["summary"]
    for name, found in rebuilt.items():
        above, error = found["points_above_guesser"], found["standard_error"]
        start = f"| {name.split(', ')[0]} | "
        cells = f"| {above:+.2f} ({error:.2f}) | {found['points_above_guesser_held_out']:+.2f} |"
        assert any(line.startswith(start) and cells in line for line in text.splitlines())
        assert "XGBoost" not in name or above > 3 * error
    replays = json.loads((folder / "replay.json").read_text())
    assert replays["pairs"] >= 1_000_000
    assert f"compares {replays['pairs']:,} pairs" in text
    for one in replays["defects"]:
        assert one["seconds"] < 60
        assert f"| {one['defect']} | {one['seconds']:.2f} | {one['found']} |" in text
