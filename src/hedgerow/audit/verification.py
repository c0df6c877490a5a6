"""Whether a model is what its ledgers say: a check for somebody who trusts none of its makers.

It reads the model, the ledgers of the coordinator and of the parties, and asks nobody. What it
cannot show is in `LIMITS`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.audit.books import Book, Books, check_party, check_sums, check_witnesses, opened
from hedgerow.audit.replaying import replayed_model
from hedgerow.data.cards import Card, Shown
from hedgerow.data.schema import Schema
from hedgerow.errors import HedgerowError, VerificationFailed
from hedgerow.methods.registry import METHODS
from hedgerow.model.ensemble import Ensemble
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.store import COORDINATOR

File = str | PathLike[str]
FORMAT = 1  # of manifests
LIMITS = (
    "This shows that the files agree with each other, and that the model and its statement follow "
    "from what was released. It cannot show that parties ran unmodified hedgerow on the rows they "
    "speak of, that their noise was random, that they were asked what the coordinator noted, or "
    "that there is no other ledger of the same rows."
)


@dataclass(frozen=True)
class Finding:
    """One check that held, and how much it covered."""

    check: str
    words: str


@dataclass(frozen=True, repr=False)
class Verification(Shown):
    """All checks that were made; every one of them held."""

    model: str  # its hash
    run: str
    promise: str
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]  # parties whose ledger was not given

    @property
    def complete(self) -> bool:
        """Whether the ledgers of all who took part were there."""
        return not self.missing

    def _card(self) -> Card:
        facts = (
            ("model", self.model[:16]),
            ("run", self.run),
            ("promise", self.promise),
            ("ledgers missing", ", ".join(self.missing) or "none"),
        )
        rows = tuple((finding.check, finding.words) for finding in self.findings)
        return Card("Verification", facts, ("checked", "found"), rows)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "complete": self.complete, "limits": LIMITS}


def verify_model(
    model: File,
    ledgers: Sequence[File],
    schema: File | None = None,
    plan: File | None = None,
    start: File | None = None,
    manifest: File | None = None,
) -> Verification:
    """Check a model against the ledgers of those who made it.

    Raises VerificationFailed, which names the file and what is wrong with it.

    Parameters
    ----------
    ledgers : the coordinator's and the parties', in any order; a file may hold several
    schema, plan : the files that people agreed on, if they are at hand
    start : the model that this one builds on, if it does
    manifest : hashes of the files, as `write_manifest` noted them when they were handed over
    """
    findings = []
    if manifest is not None:
        given = [file for file in (model, *ledgers, schema, plan, start) if file is not None]
        findings.append(_check_manifest(Path(manifest), given))
    made = _loaded(model)
    builds_on = None if start is None else _loaded(start)
    run = _run_of(made, model)
    with opened(ledgers) as books:
        findings.append(
            Finding(
                "ledgers",
                f"{books.n_lines:,} lines of {len(books.of)} owners are in order; charges add up "
                "and come before what they pay for",
            )
        )
        coordinator = books.coordinator(run)
        agreed = coordinator.reserved(run)
        assert agreed is not None
        findings.append(_check_documents(made, model, agreed, schema, plan))
        findings.append(_check_replay(made, model, agreed, coordinator, builds_on))
        names, _ = coordinator.attended(run)
        missing = tuple(name for name in names if name not in books.of)
        findings += _check_parties(names, agreed, books, missing)
    return Verification(made.hash, run, made.statement.promise(), tuple(findings), missing)


def write_manifest(path: File, files: Sequence[File]) -> None:
    """Note the SHA-256 of files by name: whoever keeps the note sees any changed byte."""
    noted = {Path(file).name: _sha256(Path(file)) for file in files}
    if len(noted) < len(files):
        raise VerificationFailed("two of the files have the same name; rename one of them")
    text = json.dumps({"format": FORMAT, "sha256": noted}, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")


def _check_manifest(manifest: Path, files: Sequence[File]) -> Finding:
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
        version, noted = document["format"], dict(document["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VerificationFailed(f"{manifest} cannot be read as a manifest: {error}") from error
    if version != FORMAT:
        raise VerificationFailed(f"{manifest} has format {version!r}; this hedgerow reads {FORMAT}")
    for path in map(Path, files):
        if path.name not in noted:
            raise VerificationFailed(f"{path} is not in the manifest {manifest}")
        if _sha256(path) != noted[path.name]:
            raise VerificationFailed(f"{path} is not the file that the manifest {manifest} noted")
    return Finding("manifest", f"{len(files)} files are byte by byte those that were noted")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise VerificationFailed(f"{path} cannot be read: {error.strerror}") from error


def _loaded(file: File) -> Ensemble:
    try:
        return Ensemble.load(file)
    except (OSError, HedgerowError) as error:
        raise VerificationFailed(f"{file} cannot be read as a model: {error}") from error


def _run_of(made: Ensemble, file: File) -> str:
    run, method = made.record.get("run"), made.record.get("method")
    if not isinstance(run, str) or method not in METHODS:
        raise VerificationFailed(
            f"{file} was not made of releases (its method is {method!r}). What parties showed each "
            "other in a session stands in its statement; no file can show that it was no more."
        )
    return run


def _check_documents(
    made: Ensemble, model: File, agreed: Plan, schema: File | None, plan: File | None
) -> Finding:
    if made.record.get("plan") != agreed.hash:
        raise VerificationFailed(f"{model} names another plan than the coordinator reserved")
    if made.schema.hash != agreed.schema_hash:
        raise VerificationFailed(f"{model} has another schema than the plan that was reserved")
    if schema is not None and _read(Schema.read, schema).hash != made.schema.hash:
        raise VerificationFailed(f"{schema} is another schema than that of {model}")
    if plan is not None and _read(Plan.read, plan).hash != agreed.hash:
        raise VerificationFailed(f"{plan} is another plan than the one that was reserved")
    files = [str(file) for file in (schema, plan) if file is not None]
    beside = f"; so have {' and '.join(files)}" if files else ""
    return Finding("plan", f"model and ledger have the plan {agreed.hash[:16]}{beside}")


def _read(read: Any, file: File) -> Any:
    try:
        return read(file)
    except (OSError, HedgerowError) as error:
        raise VerificationFailed(f"{file} cannot be read: {error}") from error


def _check_replay(
    made: Ensemble, model: File, agreed: Plan, coordinator: Book, start: Ensemble | None
) -> Finding:
    """The method, run again on the stored releases, gives this model and this statement."""
    stored = len(coordinator.ledger.lines(COORDINATOR, "release", agreed.run))
    if stored != made.statement.releases:
        raise coordinator.wrong(
            f"it has {stored} releases of run {agreed.run}, and {model} speaks of "
            f"{made.statement.releases}"
        )
    try:
        took_part = coordinator.attended(agreed.run)
        again = replayed_model(agreed, made.schema, coordinator.ledger, *took_part, start)
    except VerificationFailed as error:
        raise coordinator.wrong(str(error)) from error
    except HedgerowError as error:
        raise VerificationFailed(f"{model} cannot be made from the releases: {error}") from error
    if again != made:
        later = [name for name in ("edits", "class_weight") if name in made.record]
        why = f" Its record says that it was changed later ({', '.join(later)})." if later else ""
        raise VerificationFailed(f"{model} is not what the releases on the ledger make.{why}")
    if other := _differs(made, again):
        raise VerificationFailed(f"{model} has another {other} than the releases make.")
    stated, follows = made.statement.to_dict(), again.statement.to_dict()
    if wrong := sorted(key for key in stated if not _same(stated[key], follows.get(key))):
        raise VerificationFailed(
            f"{model} states {wrong[0]} = {stated[wrong[0]]!r}, and the ledger says "
            f"{follows.get(wrong[0])!r}"
        )
    return Finding(
        "model",
        f"made again from {made.statement.releases} releases of the coordinator's ledger: the same "
        f"{len(made.trees)} trees, and the same statement",
    )


def _differs(made: Ensemble, again: Ensemble) -> str:
    """What explanations and reports show besides the trees, and is not as it was made."""
    for one, other in zip(made.trees, again.trees, strict=True):
        for name in ("cover", "deviation"):
            said, follows = getattr(one, name), getattr(other, name)
            absent = (said is None) + (follows is None)
            if absent == 1 or not (absent or np.allclose(said, follows, 1e-4, 0, equal_nan=True)):
                return f"{name} of leaves"
    for name, value in again.record.items():
        if name != "attendance" and not _same(made.record.get(name), value):
            return f"{name!r} in its record"
    return ""


def _same(stated: Any, follows: Any) -> bool:
    """Whether two plain values are equal, numbers but for last bits of another processor's."""
    if isinstance(stated, dict) and isinstance(follows, dict):
        same = stated.keys() == follows.keys()
        return same and all(_same(stated[key], follows[key]) for key in stated)
    if isinstance(stated, list | tuple) and isinstance(follows, list | tuple):
        same = len(stated) == len(follows)
        return same and all(map(_same, stated, follows))
    if isinstance(stated, float) and isinstance(follows, float):
        return math.isclose(stated, follows, rel_tol=1e-9)
    return bool(canonical_json(stated) == canonical_json(follows))


def _check_parties(
    names: Sequence[str], agreed: Plan, books: Books, missing: Sequence[str]
) -> list[Finding]:
    there = [name for name in names if name not in missing]
    coordinator = books.coordinator(agreed.run)
    charges = sum(check_party(books.of[name], agreed, coordinator) for name in there)
    releases, added = check_sums(books, agreed, names, missing)
    kept = check_witnesses(books)
    of = f"{len(there)} of {len(names)} parties"
    found = [Finding("charges", f"{of} reserved this plan and charged {charges:,} answers")]
    if added:
        words = f"{added} of {releases} releases are the sum of what the parties' ledgers hold"
        found.append(Finding("sums", words))
    if kept:
        found.append(
            Finding("witnesses", f"{kept} heads that parties keep of each other are there")
        )
    return found
