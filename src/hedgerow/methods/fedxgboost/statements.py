"""What parties of a vertical run can see or infer, said before it and kept with the model."""

from __future__ import annotations

import math
from dataclasses import replace

from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.statement import Disclosure, Statement
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol.roles import Agreement

# These names are part of agreements, which are hashed and sent; the audits stand in the files
# audit/fedxgboost_*.py.
_AUDITS = "hedgerow.vertical.audit_"
_ACTIVE, _PASSIVE = "the active party", "passive parties"
_ADDED_UP = (
    "Every further run on these labels adds its own epsilon; the ledger of the party that has them "
    "adds it up."
)
_ALONE = "Every further run on these labels adds its own epsilon, and no ledger adds it up."


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
            "how far it is, and the lengths of letters, hence how many rows there are and how many "
            "lie in the nodes that a party splits; it cannot read letters", "not measured",
        ),
    ]  # fmt: skip
    if settings.protection != "ldp":
        found.append(
            Disclosure(
                _PASSIVE, "labels",
                "which of its own splits are the best of a node, which follows from the labels of "
                "the rows in it; one that lies about its columns chooses what it learns so",
            )
        )  # fmt: skip
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
        return [_SUMS, sizes]
    if settings.protection == "smm-1":
        return [_SUMS, *_first_matrices(f"{settings.kernel_share:g}")]
    return [gains, *_second_matrices(f"{settings.kernel_share:g}")]


_SUMS = Disclosure(
    _ACTIVE, "columns of passive parties",
    "sums of gradients for every bin of every node, columns and cuts without names; it knows the "
    "gradients, so a bin that holds one row shows which row that is, and small bins may be taken "
    "apart",
)  # fmt: skip


def _first_matrices(share: str) -> list[Disclosure]:
    """Of SMM-1; figures are of credit1_full, benchmarks/results/vertical_audit.json."""
    return [
        Disclosure(
            _ACTIVE, "columns of passive parties",
            f"the split matrix less what lies along r' of r = {share} n vectors, which hides it "
            "for one tree only: measured on credit data, projections find 100 % of its entries at "
            "0.1 n and 98 % at 0.5 n; at 0.95 n 78 % in one tree (77 % by guessing), 89 % in 8, "
            "100 % in 20",
            f"{_AUDITS}matrices.recover_splits",
        ),
        Disclosure(
            _PASSIVE, "labels",
            f"r = {share} n vectors orthogonal to the gradients: measured, once share times levels "
            "is above about 1 they show all labels of the first tree (at 0.5 n and upward)",
            f"{_AUDITS}kernels.labels_from_kernel",
        ),
    ]  # fmt: skip


def _second_matrices(share: str) -> list[Disclosure]:
    """Of SMM-2; figures as before."""
    return [
        Disclosure(
            _PASSIVE, "labels",
            "sums of gradients for every own bin of every node; a bin that holds one row shows "
            "its gradient, hence its label",
            f"{_AUDITS}labels.labels_from_gradients",
        ),
        Disclosure(
            _PASSIVE, "labels",
            f"gradients less what lies along r' of the vectors they sent (r = {share} of the null "
            "space): measured on credit data at 0.95, projections find 99 % of the labels of the "
            "first tree from one answer (94 % by guessing), all from two, and a level has two",
            f"{_AUDITS}matrices.labels_from_answers",
        ),
        Disclosure(
            _ACTIVE, "columns of passive parties",
            "vectors of the null space of each block's split matrix and random columns: measured, "
            "a linear program finds which rows share a bin for 3 % of rows at 0.5, 93 % at 0.9 and "
            "100 % at 0.95",
            f"{_AUDITS}kernels.bins_from_kernel",
        ),
    ]  # fmt: skip


def statement_for(
    agreement: Agreement,
    settings: VerticalSettings,
    simulated: bool = False,
    scope: str = "this fit alone",
) -> Statement:
    """The guarantee of a model that came of this run."""
    common = {
        "delta": 0.0,
        "trust": "parties",
        "accounting": "none",
        "parties": agreement.parties,
        "simulated": simulated,
        "scope": scope,
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
        or f"{how} Splits, totals and leaf values follow from the noisy numbers alone. Who "
        "takes two labels of a row to be equally likely is right about them in at most "
        f"{100 / (1 + math.exp(-settings.epsilon)):.4g} % of cases. {_ADDED_UP}",
        **common,  # type: ignore[arg-type]
    )


def counted_alone(statement: Statement) -> Statement:
    """The same where the run's ledger ended with it, so that nothing adds up further runs."""
    return replace(statement, reason=statement.reason.replace(_ADDED_UP, _ALONE))
