"""What parties of a vertical run can see or infer, said before it and kept with the model."""

from __future__ import annotations

from hedgerow.exchange import Agreement
from hedgerow.privacy import mechanisms
from hedgerow.statement import Disclosure, Statement
from hedgerow.vertical.settings import VerticalSettings

_AUDITS = "hedgerow.vertical.audit_"
_ACTIVE, _PASSIVE = "the active party", "passive parties"


def disclosures(settings: VerticalSettings) -> tuple[Disclosure, ...]:
    """What a run shows without an epsilon, in the order of who sees it."""
    found = [*_alignment(settings), *_statistics(settings)]
    found += [
        Disclosure(
            _ACTIVE, "columns of passive parties",
            "which rows go left and right at every split it uses, never a value or a threshold",
            f"{_AUDITS}columns.instance_spaces",
        ),
        Disclosure(
            _PASSIVE, "all columns",
            "which rows are together in a node, hence which way they went at others' splits",
            f"{_AUDITS}columns.instance_spaces",
        ),
        Disclosure(
            "the coordinator", "the run",
            "how far it is, and the lengths of letters; it cannot read them", "not measured",
        ),
    ]  # fmt: skip
    if settings.merge:
        found.append(
            Disclosure(
                "everyone with the merged model", "all rows",
                "all splits, and leaf values that follow from the rows in each leaf",
            )
        )  # fmt: skip
    return tuple(found)


def _alignment(settings: VerticalSettings) -> list[Disclosure]:
    if settings.ids == "agreed":
        what = "its number of rows, and whether it has the agreed ids in the agreed order"
        return [Disclosure(_ACTIVE, _PASSIVE, what)]
    return [
        Disclosure(
            _ACTIVE, _PASSIVE,
            "the number of ids each holds, and which of its own ids are among them",
        ),
        Disclosure(_PASSIVE, _ACTIVE, "the number of ids it holds"),
        Disclosure(_PASSIVE, "all other parties", "which of its ids they all hold"),
    ]  # fmt: skip


def _statistics(settings: VerticalSettings) -> list[Disclosure]:
    gains = Disclosure(_ACTIVE, _PASSIVE, "how good each one's best split of every node is")
    sums = Disclosure(
        _ACTIVE, "columns of passive parties",
        "sums of gradients for every candidate of every node, columns and cuts without names; a "
        "candidate with one row shows which row that is",
    )  # fmt: skip
    if settings.protection == "none":
        seen = Disclosure(
            _PASSIVE, "labels", "the gradient of every row: its label, from the first tree on",
            f"{_AUDITS}labels.labels_from_gradients",
        )  # fmt: skip
        return [seen, gains]
    if settings.protection == "ldp":
        scores = Disclosure(
            _PASSIVE, _ACTIVE, "scores of every row, by way of their Hessians; these follow from "
            "columns and from noisy labels alone",
        )  # fmt: skip
        return [scores, gains]
    if settings.protection == "paillier":
        sizes = Disclosure(_ACTIVE, _PASSIVE, "how many columns and bins each has")
        return [sums, sizes]
    share = f"{settings.kernel_share:g}"
    if settings.protection == "smm-1":
        return [
            sums,
            Disclosure(
                _ACTIVE, "columns of passive parties",
                f"the split matrix less what lies along r' of r = {share} n vectors: below about "
                "0.9 n projections find nearly all of its 0 and 1",
                f"{_AUDITS}matrices.recover_splits",
            ),
            Disclosure(
                _PASSIVE, "labels",
                f"r = {share} n vectors orthogonal to the gradients: from about half of the rows "
                "upward they show the labels of the first tree",
                f"{_AUDITS}kernels.labels_from_kernel",
            ),
        ]  # fmt: skip
    return [
        gains,
        Disclosure(
            _PASSIVE, "labels",
            f"gradients less what lies along r' of the vectors they sent (r = {share} of the null "
            "space): labels of the first tree follow by projection",
            f"{_AUDITS}matrices.labels_from_answers",
        ),
        Disclosure(
            _ACTIVE, "columns of passive parties",
            "vectors of the null space of each block's split matrix and random columns",
            f"{_AUDITS}matrices.recover_splits",
        ),
    ]  # fmt: skip


def statement_for(
    agreement: Agreement, settings: VerticalSettings, simulated: bool = False
) -> Statement:
    """The guarantee of a model that came of this run."""
    common = {
        "delta": 0.0,
        "trust": "parties",
        "accounting": "none",
        "parties": agreement.parties,
        "simulated": simulated,
        "disclosures": agreement.disclosures,
    }
    if settings.protection != "ldp":
        return Statement(
            guarantee="none",
            epsilon=0.0,
            reason="It was trained without differential privacy over parties that hold different "
            f"columns (protection {settings.protection}); leaf values are exact.",
            **common,  # type: ignore[arg-type]
        )
    once = settings.mechanism == "labels-once"
    how = (
        "Labels were randomised once, by the active party, before anything else."
        if once
        else f"Every gradient of each of {settings.n_trees} trees was perturbed "
        f"({settings.mechanism}) by the active party; the epsilons of the trees add up to this."
    )
    source = mechanisms.source_name()
    tested = "" if source == "secure" else f"Noise was {source} for a test."
    return Statement(
        guarantee="not private" if tested else "label",
        epsilon=settings.epsilon,
        neighbours="replace one label",
        reason=tested
        or f"{how} Splits, totals and leaf values follow from the noisy numbers alone.",
        **common,  # type: ignore[arg-type]
    )
