"""What an audit of the same method, promise and trust found, beside what the model promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.audit.result import AuditResult
from hedgerow.errors import SettingsError
from hedgerow.inspection.audit_chart import plot_audit
from hedgerow.inspection.drawing import Picture
from hedgerow.model.ensemble import Ensemble


@dataclass(frozen=True)
class AuditSection:
    """Words, numbers and the picture of an audit."""

    lead: str
    picture: Picture
    rows: tuple[tuple[str, str, str], ...]
    limits: str


def section_of(audit: AuditResult) -> AuditSection:
    """What the page shows of an audit."""
    lead = f"Refuted: {audit.violation}" if audit.violation else "Nothing contradicts the promise."
    rows = tuple(
        (name, _text(mu), "" if epsilon is None else _text(epsilon))
        for name, mu, epsilon in audit.numbers()
    )
    limits = (
        f"{audit.runs:,} run{'' if audit.runs == 1 else 's'} over made-up rows with "
        f"{audit.canaries:,} canar{'y' if audit.canaries == 1 else 'ies'}, "
        f"{audit.confidence:.0%} confidence. An audit can refute a promise and never prove it."
    )
    return AuditSection(lead, plot_audit(audit), rows, limits)


def check_audit(model: Ensemble, audit: AuditResult) -> None:
    """Refuse an audit of something else than what made the model."""
    statement = model.statement
    audited = (audit.method, audit.trust, audit.claimed_epsilon, audit.delta)
    made = (model.record.get("method"), statement.trust, statement.epsilon, statement.delta)
    if audited != made:
        raise SettingsError(
            f"the audit is of method, trust, epsilon and delta {audited}, and the model was made "
            f"with {made}. Nothing was written. Audit the plan of the model: hedgerow audit --plan"
        )


def _text(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"
