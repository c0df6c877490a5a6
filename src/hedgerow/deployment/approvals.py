"""Plans that wait for a person at a party, as files in its site folder; and a plan in words."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tomli_w
from rich.text import Text

from hedgerow import clock
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.model.statement import Statement
from hedgerow.party.approvals import decisions_on, standing_of
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger

log = logging.getLogger(__name__)
MOST_PENDING = 16  # the oldest goes first: whoever asks must not fill the disk
LONGEST_PLAN = 4_000_000  # bytes; more is not shown to anybody


def printable(text: str, longest: int = 60) -> str:
    """A text from outside as it may stand on a terminal: no control characters, not too long.

    >>> printable("ab" + chr(27) + "[2J")
    'ab?[2J'
    """
    clean = "".join(c if c.isprintable() else "?" for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def cell(text: str, longest: int = 60) -> Text:
    """The same for a table, where square brackets would be taken for markup."""
    return Text(printable(text, longest))


@dataclass(frozen=True)
class PlanFolder:
    """`plans/` of a site folder: `HASH.toml` was asked for. What was decided is on the ledger."""

    folder: Path

    @classmethod
    def of(cls, site: Site) -> PlanFolder:
        return cls(site.folder / "plans")

    def keep(self, plan: Plan) -> None:
        """Store a plan until a person has looked at it."""
        text = tomli_w.dumps(plan.to_dict())
        file = self.folder / f"{plan.hash}.toml"
        if file.exists() or len(text) > LONGEST_PLAN:
            return
        for old in self._files()[: -(MOST_PENDING - 1)]:
            old.unlink(missing_ok=True)
        try:
            write_private(file, text)
        except HedgerowError as error:  # the plan is refused either way, and asked for again
            log.error("a plan that waits for approval was not stored: %s", error)

    def pending(self) -> list[Plan]:
        """Plans that wait, the oldest first."""
        found = []
        for file in self._files():
            with suppress(HedgerowError, OSError):  # a damaged file is asked for again
                plan = Plan.read(file)
                if plan.hash == file.stem:
                    found.append(plan)
        return found

    def let_go(self, plan: Plan) -> None:
        """A plan that was decided on waits no longer."""
        (self.folder / f"{plan.hash}.toml").unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        files = self.folder.glob("*.toml") if self.folder.is_dir() else ()
        return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))


def waiting_plans(site: Site, ledger: Ledger) -> list[Plan]:
    """Plans that nobody has decided on and that have not ended, the oldest first."""
    today = clock.utc_now().date()
    return [
        plan
        for plan in PlanFolder.of(site).pending()
        if standing_of(ledger, site.name, plan) is None and not plan.request.has_ended(today)
    ]


def plan_named(site: Site, ledger: Ledger, named: str, approved: bool = False) -> Plan:
    """The one plan with this hash, or whose run begins so: one that waits, or is `approved`."""
    plans = _approved(site, ledger) if approved else waiting_plans(site, ledger)
    found = [plan for plan in plans if named in (plan.hash, plan.run)]
    found = found or [plan for plan in plans if plan.run.startswith(named)]
    if len(found) != 1 or not named:
        runs = ", ".join(printable(plan.run) for plan in plans) or "none"
        state = "is approved" if approved else "waits"
        how = f"no plan {state}" if not found else f"more than one plan ({len(found)}) {state}"
        raise SettingsError(
            f"{how} whose run begins with {printable(named)!r}; known: {runs}. Nothing was decided "
            "and nothing was spent. A plan waits here once the coordinator has asked to open it."
        )
    return found[0]


def _approved(site: Site, ledger: Ledger) -> list[Plan]:
    """Plans whose approval stands, as they were shown."""
    last = {one.plan: one for one in decisions_on(ledger, site.name)}
    tables = {one.plan: one.plan_table for one in decisions_on(ledger, site.name) if one.table}
    hashes = [one.plan for one in last.values() if one.what == "approve" and one.plan in tables]
    return [Plan.from_dict(tables[hash_]) for hash_ in hashes]


def plan_in_words(plan: Plan, delta: float | None = None) -> list[str]:
    """What a plan asks and costs, one sentence a line; the cost also at the party's own delta."""
    p = plan.privacy
    own = ""
    if delta is not None and (delta != p.delta or p.accounting != "exact"):
        cost = plan.budget.epsilon_at(delta)
        own = f" (counted at this party's delta = {delta:g}: epsilon = {cost:.4g})"
    slots = [
        f"{group['repeat']:,} x {printable(group['name'])}: {printable(group['kind'])}, at most "
        f"{group['coordinates']:,} values each{plan.budget.each_in_words(group)}"
        for group in plan.budget.groups()
    ]
    lines = [
        f"Run {printable(plan.run)}, method {printable(plan.method)}.",
        *_asked_by(plan),
        f"It reserves epsilon = {plan.epsilon:.4g} at delta = {p.delta:g}{own}; the unit of "
        f"privacy is one {printable(plan.unit)}{_counting(plan)}.",
        _other_changes(plan),
        f"Trust in: {p.trust}; at least {p.minimum_parties} parties in a sum, of which "
        f"{p.colluding} may collude; {p.spare} spare attempts, paid in advance.",
        f"It releases at most {plan.budget.released:,} noisy values in {plan.n_slots:,} queries"
        f"; {p.trusted.seen}. It asks:",
        *(f"  {text}" for text in slots[:40]),
    ]
    if len(slots) > 40:
        lines.append(f"  and {len(slots) - 40:,} further groups of queries")
    told = [*plan.budget.notes(), *plan.budget.adaptive.words()]
    lines += [f"  {printable(line, 2000)}" for line in told]
    return [*lines, *_public_facts(plan)]


def _asked_by(plan: Plan) -> list[str]:
    """Who asks and what for, in the words of whoever made the plan."""
    request = plan.request
    asker = printable(request.asker, 120) or "nobody named"
    purpose = (
        f"for: {printable(request.purpose, 500)}" if request.purpose else "for no purpose named"
    )
    ends = f"Its last day is {request.ends} (UTC)" if request.ends else "It has no last day"
    return [f"Asked for by {asker}, {purpose}. {ends}."]


def _other_changes(plan: Plan) -> str:
    """What it costs where a unit is replaced, or several come or go."""
    p = plan.privacy
    unit = "row" if plan.unit == "row" else "person"
    said = Statement(plan.guarantee, plan.epsilon, p.delta, p.trust, p.accounting, plan.mu, unit)
    costs = [change.cells() for change in said.changes(groups=(5, 10))[1:]]
    told = "; ".join(f"{what}: epsilon = {epsilon}" for what, epsilon, _ in costs)
    return f"For other changes than that{', at the same delta' if p.delta else ''}: {told}."


def _counting(plan: Plan) -> str:
    """How often a row can count, where rows have weights; an evaluation counts each once."""
    if plan.max_weight == 1 or plan.measures:
        return ""
    return f", a row counts at most {plan.max_weight:g} times and all noise grows by as much"


def _public_facts(plan: Plan) -> list[str]:
    """What a plan takes for granted: a model to build on, and the number of rows."""
    given, lines = plan.settings, []
    says = printable(given.model_says, 300) or "nothing"
    if plan.measures:
        lines.append(
            f"It measures the model {printable(given.model, 64) or 'without a hash'}: how its "
            "predictions turn out on these rows. What the coordinator says that model promises: "
            f"{says}. If it was trained on rows of this party, that cost comes on top."
        )
    elif given.model or given.model_says:
        lines.append(
            f"It builds on the model {printable(given.model, 64) or 'without a hash'}. What "
            f"the coordinator says that model promises: {says}. If it was trained on rows of this "
            "party, that cost comes on top of this plan's."
        )
    if given.public_rows:
        lines.append(
            f"It takes the number of rows of all parties together for public: "
            f"{given.public_rows:,}. No noisy count is bought."
        )
    return lines


def sync_folder(folder: Path) -> None:
    """The names in a folder are on disk; a file's own sync does not say so."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_private(file: Path, content: str | bytes) -> None:
    """Write by rename a file that only its owner may read."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, file)
        sync_folder(file.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise HedgerowError(f"cannot write {file}: {reason}. Nothing was spent.") from error
