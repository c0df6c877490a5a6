"""The mistakes of `tests/test_mistakes.py`: how each is made and what its message must contain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import __version__
from hedgerow.errors import HedgerowError, SchemaError, SettingsError, TableError

PROMISE = ("--epsilon", "2", "--delta", "1e-5")
SMALL = ("--method", "random-trees", "--trees", "3", "--depth", "2")
TABLES = ("--data", "a.csv", "--data", "b.csv", "--data", "c.csv")
TRAIN = ("train", "--schema", "schema.toml", "--out", "m.hedge", *SMALL)
Prepare = Callable[[Path], object]


def swap(file: str, old: str, new: str, count: int = -1) -> Prepare:
    """Replace a text in a file; it must be there."""

    def prepare(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new, count))

    return prepare


def cell(column: int, value: str, rows: int = 3, quoted: bool = False) -> Prepare:
    """Write a value into the first rows of a column of b.csv."""

    def prepare(folder: Path) -> None:
        lines = [line.split(",") for line in (folder / "b.csv").read_text().splitlines()]
        for line in lines[1 : rows + 1]:
            line[column] = f'"{value}"' if quoted else value
        (folder / "b.csv").write_text("\n".join(",".join(line) for line in lines) + "\n")

    return prepare


def times(*cuts: int, codes: str = '["no", "yes"]') -> Prepare:
    """Make `dose` the time to `sick`; the column goes."""

    def prepare(folder: Path) -> None:
        said = f"cuts = {list(cuts)}\n" if cuts else ""
        label = f'name = "dose"\nevent = "sick"\nevent_codes = {codes}\n{said}'
        text = (folder / "schema.toml").read_text()
        head, _, rest = text.partition("[label]")
        unit, *columns = rest[rest.index("[unit]") :].split("[[column]]")
        kept = [column for column in columns if 'name = "dose"' not in column]
        parts = (f"{head}[label]\n{label}\n{unit}", *kept)
        (folder / "schema.toml").write_text("[[column]]".join(parts))

    return prepare


def write(file: str, text: str | bytes) -> Prepare:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / file).write_bytes(data)


def newer(file: str, old: bytes, new: bytes) -> Prepare:
    def prepare(folder: Path) -> None:
        data = (folder / file).read_bytes()
        assert old in data
        (folder / file).write_bytes(data.replace(old, new, 1))

    return prepare


def nothing(folder: Path) -> None:
    """The mistake is in the command."""


@dataclass(frozen=True)
class Mistake:
    name: str
    words: tuple[str, ...]  # of the command; those of `train` without a command in front
    pieces: tuple[str, ...]  # of the message
    prepare: Prepare = nothing
    code: int = 2
    trained: bool = False  # whether m.hedge exists already


def on_train(*words: str) -> tuple[str, ...]:
    return (*TRAIN, *TABLES, *PROMISE, *words)


SPENT = "nothing was spent"
ON_TIMES = ("train", "--schema", "schema.toml", "--out", "m.hedge", *TABLES, *PROMISE)
MISTAKES: list[Mistake] = [
    Mistake("wrong path of a table", (*TRAIN, *PROMISE, "--data", "north.csv"),
            ("no table at north.csv", "check the path", SPENT)),
    Mistake("a table separated by tabs", (*TRAIN, *PROMISE, "--data", "north.tsv"),
            ("ends in '.tsv'", "call it .csv", "--separator tab", SPENT)),
    Mistake("a packed table", (*TRAIN, *PROMISE, "--data", "north.csv.gz"),
            ("ends in '.gz'", "unpack it", SPENT)),
    Mistake("a spreadsheet", (*TRAIN, *PROMISE, "--data", "north.xlsx"),
            ("ends in '.xlsx'", "save it as CSV UTF-8", SPENT)),
    Mistake("wrong path of the schema", ("train", "--schema", "scheme.toml", "--out", "m.hedge",
            *TABLES, *PROMISE),
            ("no schema file at scheme.toml", "check the path", SPENT)),
    Mistake("negative times", ON_TIMES,
            ("label 'dose' is negative in 3 rows", "leave these rows out", SPENT),
            lambda folder: (times(1, 2, 5)(folder), cell(1, "-1")(folder))),
    Mistake("another event code", ON_TIMES,
            ("3 rows with a code that is neither 'no' (censored) nor 'yes'", "competing", SPENT),
            lambda folder: (times(1, 2, 5)(folder), cell(3, "other")(folder))),
    Mistake("competing events", ON_TIMES,
            ("has 3 event codes", "Competing events are not modelled", SPENT),
            times(1, 2, 5, codes='["no", "yes", "other"]')),
    Mistake("times without cuts", ON_TIMES,
            ("needs both: event", "cuts = [...]", SPENT), times()),
    Mistake("times with a method that does not know them", (*ON_TIMES, "--method", "dp-gbm"),
            ("method 'dp-gbm' knows nothing of times to an event", "Nothing was asked"),
            times(1, 2, 5)),
    Mistake("wrong path of a model", ("predict", "modle.hedge", "--data", "a.csv", "--out", "-"),
            ("no model at modle.hedge", "check the path")),
    Mistake("wrong path of a ledger", ("ledger", "show", "spent.ledger"),
            ("no ledger at spent.ledger", "check the path")),
    Mistake("wrong path of a plan", on_train("--plan", "paln.toml"),
            ("no plan file at paln.toml", "hedgerow plan", SPENT)),
    Mistake("label not in the table", on_train(),
            ("b.csv has no column 'sick'", "names must match exactly", SPENT),
            swap("b.csv", "sick", "ill", 1)),
    Mistake("class not in the schema", on_train(),
            ("b.csv: label 'sick' has 3 rows", "list of 2", "agree on a schema", SPENT),
            cell(3, "perhaps")),
    Mistake("label missing", on_train(),
            ("b.csv: label 'sick' is missing in 3 rows", "leave them out", SPENT),
            cell(3, "")),
    Mistake("unknown category", on_train(),
            ("b.csv: column 'site' has 3 rows", "its 2 categories", 'other = "category"', SPENT),
            cell(2, "east")),
    Mistake("missing value where none may be", on_train(),
            ("column 'dose' has missing = false and 3 rows", "missing = true", SPENT),
            cell(1, "")),
    Mistake("budget used up", on_train("--ledger", "all.ledger", "--budget-epsilon", "1"),
            ("from 0.000 to 2.", "over the budget of 1", "No party was asked", SPENT,
             "smaller epsilon"),
            code=4),
    Mistake("two names for one ledger", on_train("--ledger", "x.ledger", "--data-name", "rows"),
            ("--ledger and --data-name both name a ledger", "keep one", SPENT)),
    Mistake("a data set named by a path", on_train("--data-name", "ledgers/rows"),
            ("'ledgers/rows' is no name of a data set", "letters, digits", SPENT)),
    Mistake("a ledger and a table to look for", ("ledger", "show", "rows", "--data", "a.csv"),
            ("both say which ledger is meant", "keep one")),
    Mistake("a table that no ledger counts", ("ledger", "verify", "--data", "a.csv"),
            ("0 ledgers count", "a.csv", "hedgerow ledger list")),
    Mistake("too few parties", (*TRAIN, *PROMISE, "--data", "a.csv", "--data", "b.csv"),
            ("at least 3 parties and there are 2", "Trust the coordinator", "minimum_parties",
             "othing was asked")),
    Mistake("a delta for pure epsilon", ("train", "--schema", "schema.toml", "--out", "m.hedge",
            *TABLES, *PROMISE, "--method", "private-tree"),
            ("delta is 1e-05", "pure accounting has none", "set delta = 0", SPENT)),
    Mistake("pure epsilon with Gaussian noise", (*TRAIN, *TABLES, "--epsilon", "2", "--delta", "0",
            "--accounting", "pure"),
            ("'random-trees' adds Gaussian noise", "private-tree", "othing was asked")),
    Mistake("pure epsilon and trust in nobody", ("train", "--schema", "schema.toml", "--out",
            "m.hedge", *TABLES, "--epsilon", "2", "--method", "private-tree", "--trust", "nobody"),
            ("trust in nobody", '"parties" or "coordinator"', SPENT)),
    Mistake("a choice from exact sums without trust in the coordinator", ("train", "--schema",
            "schema.toml", "--out", "m.hedge", *TABLES, "--epsilon", "2", "--method", "dp-xgboost",
            "--trust", "parties"),
            ("'dp-xgboost' is for trust 'coordinator'", "'parties'", "othing was asked")),
    Mistake("pure questions counted as Gaussian ones", ("train", "--schema", "schema.toml", "--out",
            "m.hedge", *TABLES, *PROMISE, "--method", "dp-xgboost", "--accounting", "renyi"),
            ("pure or exact", "'renyi'", "othing was asked")),
    Mistake("shares that leave nothing", ("train", "--schema", "schema.toml", "--out", "m.hedge",
            *TABLES, "--epsilon", "2", "--method", "dp-xgboost", "--set", "sketch_share=0.5",
            "--set", "leaf_share=0.5"),
            ("leave nothing for the splits", "othing was asked")),
    Mistake("a format that is none", ("export", "m.hedge", "--to", "pickle", "--out", "m.pkl"),
            ("'pickle' is not a format", "xgboost, onnx, sklearn, treelite"), trained=True),
    Mistake("an export into a folder", ("export", "m.hedge", "--to", "xgboost", "--out", "."),
            ("is a folder", "name a file"), trained=True),
    Mistake("many trees drawn as one", ("tree", "m.hedge"),
            ("cannot be drawn as one readable tree", 'method "private-tree"'), trained=True),
    Mistake("real rows in an audit", ("audit", "--schema", "schema.toml", *PROMISE, "--data",
            "a.csv"),
            ("real rows are not audited", "no plan declares any", SPENT, "Leave --data out")),
    Mistake("an audit of pure epsilon by its releases", ("audit", "--schema", "schema.toml",
            "--epsilon", "1", "--method", "private-tree"),
            ("scores Gaussian noise", "'private-tree'", "Nothing was audited", "--black-box")),
    Mistake("runs of an audit that is one run", ("audit", "--schema", "schema.toml", *PROMISE,
            "--runs", "20"),
            ("--runs belongs to --black-box", "one run")),
    Mistake("a notebook that is none", ("demo", "--notebook", "demo.py"),
            ("demo.py is no name of a notebook", "ends in .ipynb")),
    Mistake("a ledger named as the model", ("statement", "m.hedge.ledger"),
            ("m.hedge.ledger is not a hedgerow model", "looks like a ledger", "name a .hedge file"),
            trained=True),
    Mistake("newer model", ("statement", "m.hedge"),
            ("m.hedge has model format 9", "reads (2)", "install the hedgerow version",
             f"later than {__version__}"),
            newer("m.hedge", b"HEDGEROW\x02", b"HEDGEROW\x09"), trained=True),
    Mistake("model of format 0", ("statement", "m.hedge"),
            ("m.hedge is cut short or damaged", "fetch it again"),
            newer("m.hedge", b"HEDGEROW\x02", b"HEDGEROW\x00"), trained=True),
    Mistake("newer plan", on_train(),
            ("m.hedge.plan.toml: plan format 2 is newer", "reads (1)",
             "install the hedgerow version", SPENT),
            swap("m.hedge.plan.toml", "format = 1", "format = 2"), trained=True),
    Mistake("older plan", on_train(),
            ("m.hedge.plan.toml: format is 0; it must be 1", SPENT),
            swap("m.hedge.plan.toml", "format = 1", "format = 0"), trained=True),
    Mistake("newer schema", on_train(),
            ("schema.toml: schema format 2 is newer", "reads (1)", "install the hedgerow version",
             SPENT),
            swap("schema.toml", "format = 1", "format = 2")),
    Mistake("older schema", on_train(),
            ("schema.toml: format is 0; it must be 1", SPENT),
            swap("schema.toml", "format = 1", "format = 0")),
    Mistake("decimal comma", on_train(),
            ("b.csv: column 'dose' is numeric and 3 rows", "decimal comma", "write decimal points",
             'say decimal = "," under [csv]', SPENT),
            cell(1, "3,14", quoted=True)),
    Mistake("decimal comma without quotes", on_train(),
            ("b.csv has 3 lines unlike its header in length", "quote fields", "also numbers",
             SPENT),
            cell(1, "3,14")),
    Mistake("semicolons between fields", on_train(),
            ("b.csv seems to be separated by semicolons", 'say so with separator = ";"',
             "under [csv] in the schema", SPENT),
            swap("b.csv", ",", ";")),
    Mistake("a file of another encoding", on_train(),
            ("b.csv is not readable as CSV in its encoding", "encoding under [csv] in the schema",
             "cp1252", SPENT),
            newer("b.csv", b"north", b"n\xf6rd")),
    Mistake("a decimal point in a file with decimal commas", on_train(),
            ("column 'age' is numeric and 40 rows", 'some have a point, and [csv]', "thousands",
             SPENT),
            swap("schema.toml", "[label]", '[csv]\ndecimal = ","\n\n[label]')),
    Mistake("an encoding that nobody knows", on_train(),
            ("schema.toml: [csv] has encoding = 'ansi-1252'", "cp1252", SPENT),
            swap("schema.toml", "[label]", '[csv]\nencoding = "ansi-1252"\n\n[label]')),
    Mistake("dates in a numeric column", on_train(),
            ("b.csv: column 'age' is numeric and 3 rows", "some are dates", "such as days", SPENT),
            cell(0, "2024-05-17")),
    Mistake("text in a numeric column", on_train(),
            ("b.csv: column 'age' is numeric and 3 rows hold text that is no number",
             "leave the field empty", SPENT),
            cell(0, "old")),
    Mistake("a column twice", on_train(),
            ("b.csv has column 'dose' more than once", "keep one", SPENT),
            lambda f: (swap("b.csv", "\n", ",1\n")(f), swap("b.csv", ",1\n", ",dose\n", 1)(f))),
    Mistake("empty table", on_train(),
            ("b.csv has 0 rows", "at least one", SPENT),
            write("b.csv", "age,dose,site,sick\n")),
    Mistake("empty file", on_train(),
            ("b.csv is empty", "write a header and rows", SPENT),
            write("b.csv", "")),
    Mistake("reversed bounds", on_train(),
            ("schema.toml: column 'age' has lower = 100 and upper = 0", "swap", SPENT),
            swap("schema.toml", "lower = 0\nupper = 100", "lower = 100\nupper = 0")),
    Mistake("bounds too close for 32-bit floats", on_train(),
            ("schema.toml: column 'age' has lower = 1000000000000 and upper = 1000000008000",
             "too close together", "65536 apart", "Subtract a public number", SPENT),
            swap("schema.toml", "lower = 0\nupper = 100",
                 "lower = 1000000000000\nupper = 1000000008000")),
    Mistake("a delta that allows to publish a row",
            ("plan", "--schema", "schema.toml", "--epsilon", "1", "--delta", "0.01", "--set",
             "rows_hint=5000"),
            ("delta = 0.01 is above 1 / rows = 0.0002", "publish one of the rows",
             "Choose a delta well below"), code=0),
    Mistake("an epsilon that promises nothing",
            ("plan", "--schema", "schema.toml", "--epsilon", "50", "--delta", "1e-6"),
            ("epsilon = 50 is above 10", "right nearly always", "Choose 1 or so"), code=0),
    Mistake("a list of one category",
            ("plan", "--schema", "schema.toml", *PROMISE),
            ("column 'site' lists one category", "leave it out"),
            swap("schema.toml", '    "south",\n', ""), code=0),
    Mistake("a table that is checked and refused",
            ("schema", "check", "schema.toml", "--data", "b.csv"),
            ("b.csv: column 'site' has 3 rows", "its 2 categories"), cell(2, "east")),
    Mistake("a draft that nobody confirmed",
            ("plan", "--schema", "schema.toml", *PROMISE),
            ("drafted from rows, confirmed by nobody", "not covered by epsilon",
             "hedgerow schema confirm"),
            swap("schema.toml", "format = 1", "format = 1\ndrafted = true"), code=0),
    Mistake("confirming what is no draft", ("schema", "confirm", "schema.toml", "--by", "A. Meyer"),
            ("schema.toml is no draft", "nothing to confirm")),
    Mistake("confirming in nobody's name", ("schema", "confirm", "schema.toml", "--by", " "),
            ("by a name that is not empty",),
            swap("schema.toml", "format = 1", "format = 1\ndrafted = true")),
    Mistake("a label that the sample lacks",
            ("schema", "draft", "--data", "a.csv", "--label", "ill"),
            ("a.csv has no label column 'ill'", "age, dose, site, sick")),
    Mistake("one category in two spellings", on_train(),
            ("schema.toml: column 'site' lists 'true' and 'TRUE'", "same category", "keep one",
             SPENT),
            swap("schema.toml", '"north"', '"true",\n    "TRUE"')),
    Mistake("unknown key in the schema", on_train(),
            ("schema.toml: column 'age' has the unknown key 'maximum'",
             "known: kind, name, lower, upper", SPENT),
            swap("schema.toml", "upper = 100", "maximum = 100")),
    Mistake("misspelt key in the schema", on_train(),
            ("schema.toml: column 'age' has the unknown key 'uper' (did you mean 'upper'?)", SPENT),
            swap("schema.toml", "upper = 100", "uper = 100")),
    Mistake("bound left out of the schema", on_train(),
            ("schema.toml: column 'age' has no 'upper'", "public fact", SPENT),
            swap("schema.toml", "upper = 100\n", "")),
    Mistake("schema that is no TOML", on_train(),
            ("schema.toml is not valid TOML", "line", SPENT),
            swap("schema.toml", "upper = 100", "upper = 100 years")),
    Mistake("unknown setting", on_train("--set", "bath_size=3"),
            ("unknown setting 'bath_size' (did you mean 'batch_size'?)", "known:", SPENT)),
    Mistake("setting called as in XGBoost", on_train("--set", "gamma=1"),
            ("unknown setting 'gamma' (did you mean 'gain_penalty'?)", "known:", SPENT)),
    Mistake("early stopping", on_train("--set", "early_stopping_rounds=5"),
            ("unknown setting 'early_stopping_rounds'", "not covered by epsilon", SPENT)),
    Mistake("unknown method", on_train("--method", "xgboost"),
            ("no method called 'xgboost'", "known: auto", SPENT)),
    Mistake("epsilon 0", (*TRAIN, *TABLES, "--epsilon", "0", "--delta", "1e-5"),
            ("epsilon is 0.0", "above 0", SPENT)),
    Mistake("negative epsilon", (*TRAIN, *TABLES, "--epsilon", "-1", "--delta", "1e-5"),
            ("epsilon is -1.0", "above 0", SPENT)),
    Mistake("epsilon as text", (*TRAIN, *TABLES, "--epsilon", "strong", "--delta", "1e-5"),
            ("Invalid value for '--epsilon'", "valid number")),
    Mistake("delta 1", (*TRAIN, *TABLES, "--epsilon", "1", "--delta", "1"),
            ("delta is 1.0", "at most 0.5", SPENT)),
    Mistake("no epsilon at all", (*TRAIN, *TABLES),
            ("epsilon is not set", "--epsilon (1 is usual)", "HEDGEROW_EPSILON", "--plan",
             "othing was asked")),
    Mistake("no delta", (*TRAIN, *TABLES, "--epsilon", "1"),
            ("delta is not set", "--delta (1e-6, well below 1 / rows)", "othing was asked")),
    Mistake("two parties of one name", (*TRAIN, *PROMISE, "--data", "x=a.csv", "--data", "x=b.csv"),
            ("two tables belong to the party 'x'", "name=path", SPENT)),
    Mistake("a last day in another order", (*TRAIN, *PROMISE, *TABLES, "--ends", "31.12.2026"),
            ("ends is '31.12.2026'", "a day such as 2026-12-31", SPENT)),
    Mistake("a purpose of two lines", (*TRAIN, *PROMISE, *TABLES, "--purpose", "one\ntwo"),
            ("purpose must be one line of at most 500", SPENT)),
    Mistake("a party name with capitals", (*TRAIN, *PROMISE, "--data", "North=a.csv"),
            ("'North' is not a party name", "1 to 40 of a-z, 0-9", SPENT)),
    Mistake("a party name that begins like an option", (*TRAIN, *PROMISE, "--data", "-x=a.csv"),
            ("'-x' is not a party name", "no hyphen first", SPENT)),
    Mistake("a party called coordinator", (*TRAIN, *PROMISE, "--data", "coordinator=a.csv"),
            ("'coordinator' is not a party name", SPENT)),
    Mistake("folder instead of a table", (*TRAIN, *PROMISE, "--data", "north=."),
            (". is a folder", SPENT)),
    Mistake("folder called like a table", (*TRAIN, *PROMISE, "--data", "folder.csv"),
            ("folder.csv is a folder", SPENT), lambda f: (f / "folder.csv").mkdir()),
    Mistake("folder instead of a schema", ("schema", "check", "."),
            (". is a folder", "schema file")),
    Mistake("folder instead of a model", ("statement", "."),
            (". is a folder", "model")),
    Mistake("folder instead of a ledger", on_train("--ledger", "."),
            (". is a folder", "name a ledger file", "othing was spent")),
    Mistake("folder instead of the model to write", (*on_train(), "--out", "."),
            (". is a folder", "name a file", "othing was spent")),
    Mistake("schema where data belong", (*TRAIN, *PROMISE, "--data", "schema.toml"),
            ("schema.toml ends in '.toml'", ".parquet, .pq or .csv", SPENT)),
    Mistake("data where the schema belongs", ("schema", "check", "a.csv"),
            ("a.csv is not valid TOML",)),
    Mistake("table where the model belongs", ("statement", "a.csv"),
            ("a.csv is not a hedgerow model",)),
    Mistake("model where the ledger belongs", ("ledger", "verify", "m.hedge"),
            ("m.hedge is not a hedgerow ledger",), trained=True),
    Mistake("model cut short", ("predict", "m.hedge", "--data", "a.csv", "--out", "-"),
            ("m.hedge is cut short or damaged", "fetch it again"),
            lambda f: write("m.hedge", (f / "m.hedge").read_bytes()[:-100])(f), trained=True),
    Mistake("model changed", ("predict", "m.hedge", "--data", "a.csv", "--out", "-"),
            ("m.hedge was changed after it was written", "fetch it again"),
            newer("m.hedge", b"epsilon", b"Epsilon"), trained=True),
    Mistake("another epsilon for the same model", (*TRAIN, *TABLES, "--epsilon", "3"),
            ("--epsilon is 3.0, the plan has 2.0", "another --out", "othing was asked"),
             trained=True),
    Mistake("nothing to resume", on_train("--resume"),
            ("no run to resume", "no plan at m.hedge.plan.toml", "leave out --resume",
             "othing was asked")),
    Mistake("label column missing in evaluation", ("evaluate", "m.hedge", "--data", "b.csv"),
            ("b.csv needs the label column 'sick'", "hedgerow predict"),
            swap("b.csv", "sick", "ill", 1), trained=True),
    Mistake("private result without an epsilon",
            ("evaluate", "m.hedge", *TABLES, "--out", "e.json"),
            ("--out belongs to a private evaluation", "no --epsilon", SPENT), trained=True),
    Mistake("two parties for a masked evaluation",
            ("evaluate", "m.hedge", *TABLES[:4], "--epsilon", "1"),
            ("at least 3 parties and there are 2", "othing was asked"), trained=True),
    Mistake("columns in parties, rows in no order",
            ("vertical", "train", "--schema", "schema.toml", "--out", "m", *TABLES),
            ("how do rows of the tables belong together", "--id", "--agreed-ids", SPENT)),
    Mistake("an epsilon for a protection without one",
            ("vertical", "train", "--schema", "schema.toml", "--out", "m", "--data", "a.csv",
             "--agreed-ids", "--epsilon", "1"),
            ("--epsilon belongs to --protection ldp", "paillier", "no epsilon", SPENT)),
    Mistake("one table in a vertical run",
            ("vertical", "train", "--schema", "schema.toml", "--out", "m", "--data", "a.csv",
             "--agreed-ids"),
            ("all columns belong to 'a'", "hedgerow train", "Nothing was sent")),
    Mistake("exact numbers from other sites", ("evaluate", "m.hedge", "--engine", "grpc"),
            ("exact numbers need the rows here", "Give --epsilon", SPENT), trained=True),
    Mistake("all rows held out", on_train("--holdout", "1"),
            ("--holdout is 1", "above 0 and at most 0.9", "such as 0.2", SPENT)),
    Mistake("rows held out of other sites", ("train", "--schema", "schema.toml", "--out", "m.hedge",
            "--site", "x", "--holdout", "0.2"),
            ("parts tables of this machine", "a table of their own there", SPENT)),
    Mistake("held-out rows of a run without", ("evaluate", "m.hedge", *TABLES, "--holdout"),
            ("all rows were trained on", "train with --holdout 0.2", SPENT), trained=True),
]  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A mistake with the estimator."""

    name: str
    kind: type[HedgerowError]
    pieces: tuple[str, ...]
    settings: dict[str, Any]
    X: Any = None
    y: Any = None
    parties: Any = None
    keywords: dict[str, Any] = field(default_factory=dict)  # further ones of fit


X = np.linspace(0, 1, 60).reshape(-1, 2)
Y = np.array(["no", "yes"] * 15)
GOOD = {
    "method": "random-trees",
    "bounds": (0, 1),
    "classes": ["no", "yes"],
    "n_trees": 3,
    "max_depth": 2,
}
FITS = [
    Fit("no public facts", SchemaError, ("public facts are missing", "Schema.read"),
            {"bounds": None}),
    Fit("bounds without classes", SchemaError,
        ("public facts are missing", "bounds are given, and nothing about the label"),
        {"classes": None}),
    Fit("epsilon in the place of the schema", SchemaError,
        ("schema is a float", "given by name, as epsilon=1.0"), {"schema": 1.0, "bounds": None}),
    Fit("categories in the place of bounds", SchemaError,
        ("column 'b' has bounds", "give (low, high)", "Categorical(name, values)"),
        {"bounds": {"a": (0, 1), "b": ["desk", "field"]}}),
    Fit("float ids as party names", SettingsError, ("'1.0' is not a party name", "a-z, 0-9"), {},
        parties=np.repeat([1.0, 2.0, 3.0], 10)),
    Fit("too few parties", SettingsError, ("at least 3 parties and there are 2",
            "Nothing was asked"), {},
        parties=np.repeat(["a", "b"], 15)),
    Fit("one party name for too few rows", TableError, ("shape (3,)", "30 rows"), {}, parties=["a",
            "b", "c"]),
    Fit("None among the party names", TableError, ("names no party for 10 of 30 rows",
            "name the party of every row", "Nothing was asked"), {},
        parties=np.array([*(["a"] * 10), *(["b"] * 10), *([None] * 10)], object)),
    Fit("NaN among the party names", TableError, ("names no party for 3 of 30 rows", "NaN"), {},
        parties=[*(["a"] * 9), *(["b"] * 9), *(["c"] * 9), float("nan"), None, ""]),
    Fit("one class in two spellings", SchemaError, ("lists 1 and 'True'", "same class", "keep one"),
            {"classes": [1, "True"]}),
    Fit("no class at all", SchemaError, ("an empty field is a missing value",),
            {"classes": ["no", ""]}),
    Fit("class not in the list", TableError, ("30 rows of a class", "list of 2"), {},
            y=np.array([0, 1] * 15)),
    Fit("fewer labels than rows", TableError, ("30 rows and 29 labels",), {}, y=Y[:-1]),
    Fit("reversed bounds", SchemaError, ("lower = 1", "upper = 0"), {"bounds": (1, 0)}),
    Fit("one column as a list", TableError, ("1-D array", "reshape"), {}, X=X[:, 0]),
    Fit("unknown setting", SettingsError, ("'depth' (did you mean 'max_depth'?)",),
            {"settings": {"depth": 3}}),
    Fit("trees called as in scikit-learn", SettingsError,
            ("Classifier has no parameter 'n_estimators' (did you mean 'n_trees'?)",),
            {"n_estimators": 100}),
    Fit("misspelt parameter", SettingsError, ("'learning_rat' (did you mean 'learning_rate'?)",),
            {"learning_rat": 0.1}),
    Fit("parameter that is nothing", SettingsError, ("no parameter 'colour'; it has schema, eps",),
            {"colour": 1}),
    Fit("setting as a parameter", SettingsError,
            ("'reg_lambda'; it is a setting", 'settings={"reg_lambda": ...}'), {"reg_lambda": 1.0}),
    Fit("XGBoost's setting as a parameter", SettingsError,
            ("'gamma'", 'settings={"gain_penalty": ...}'), {"gamma": 1.0}),
    Fit("early stopping", SettingsError,
            ("no parameter 'early_stopping_rounds'", "the plan fixes the rounds",
             "evaluate_privately"), {"early_stopping_rounds": 5}),
    Fit("rows to stop by", SettingsError,
            ("fit takes no 'eval_set'", "evaluate_privately", "Nothing was asked"), {},
        keywords={"eval_set": [(X, Y)]}),
    Fit("misspelt keyword of fit", SettingsError,
            ("'partys' (did you mean 'parties'?)", "Nothing was asked"), {},
        keywords={"partys": ["a"] * 30}),
    Fit("weights of rows without a cap", SettingsError,
            ("max_weight=2", "[weight]", "class_weight", "Nothing was asked"), {},
        keywords={"sample_weight": np.ones(30)}),
    Fit("weights of rows that are missing", TableError, ("weight", "missing in 30 rows"),
            {"max_weight": 2.0}, keywords={"sample_weight": [None] * 30}),
    Fit("fewer weights than rows", TableError, ("30 rows and 29 weights",),
            {"max_weight": 2.0}, keywords={"sample_weight": np.ones(29)}),
    Fit("cap on weights below one", SchemaError, ("at_most = 0.5", "from 1 to 10000"),
            {"max_weight": 0.5}, keywords={"sample_weight": np.ones(30)}),
    Fit("weights for a pure method", SettingsError,
            ("'dp-xgboost' cannot weigh rows", "choose one of: auto", "Nothing was asked"),
            {"max_weight": 2.0, "method": "dp-xgboost", "trust": "coordinator"},
        keywords={"sample_weight": np.ones(30)}),
    Fit("misspelt weights of rows", SettingsError,
            ("'weights' (did you mean 'sample_weight'?)", "Nothing was asked"), {},
        keywords={"weights": np.ones(30)}),
    Fit("weight of a class that is none", SettingsError,
            ("class_weight names 'maybe'", "the classes are no, yes", "Nothing was asked"),
            {"class_weight": {"maybe": 2.0}}),
    Fit("weight that is nothing", SettingsError,
            ("gives 'yes' the weight 0", "from 1e-06 to 1e+06", "Nothing was asked"),
            {"class_weight": {"yes": 0}}),
    Fit("misspelt weights", SettingsError, ("'balance'", '"balanced"', "Nothing was asked"),
            {"class_weight": "balance"}),
    Fit("weights as a list", SettingsError, ("class_weight is a list", "dict"),
            {"class_weight": [1, 2]}),
    Fit("weights for a forest", SettingsError,
            ("class_weight shifts log-odds", "'dp-rf' has none", "Nothing was asked"),
            {"class_weight": "balanced", "method": "dp-rf"}),
    Fit("balanced without a count", SettingsError,
            ("buys no count of the classes", "start_share is 0", "Nothing was asked"),
            {"class_weight": "balanced", "settings": {"start_share": 0.0}}),
    Fit("weights as in XGBoost", SettingsError,
            ("'scale_pos_weight' (did you mean 'class_weight'?)",), {"scale_pos_weight": 9}),
    Fit("number of trees for a method without", SettingsError,
            ("method 'auto' does not use 'n_trees'", "leave it out"), {"method": "auto"}),
    Fit("a setting twice", SettingsError, ("'n_trees' is given twice",),
            {"settings": {"n_trees": 3}}),
    Fit("epsilon as text", SettingsError, ("epsilon is '1'", "above 0"), {"epsilon": "1"}),
    Fit("epsilon 0", SettingsError, ("epsilon is 0", "above 0"), {"epsilon": 0}),
    Fit("delta 1", SettingsError, ("delta is 1", "at most 0.5"), {"delta": 1}),
    Fit("unknown method", SettingsError, ("no method called 'rf'", "auto"), {"method": "rf"}),
    Fit("schema path that is not there", SchemaError, ("no schema file at s.toml",),
            {"schema": "s.toml"}),
]  # fmt: skip
