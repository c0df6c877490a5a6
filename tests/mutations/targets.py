"""Which modules a bound, a noise, a charge, a mask or a check rests on, and which tests notice.

Tests beside a module come first, because they are quick; what they let pass, WIDE must notice.
"""

from __future__ import annotations

ACCOUNTING = ("tests/privacy/accounting",)
LEDGER = ("tests/privacy/ledger/test_reservation.py", "tests/privacy/ledger/test_ledger.py",
          "tests/privacy/ledger/test_gaps.py")  # fmt: skip
NOISE = ("tests/statistical/test_noise.py", "tests/statistical/test_discrete_laplace.py",
         "tests/statistical/test_choices.py", "tests/mutations/test_mutations.py")  # fmt: skip
QUERIES = ("tests/queries", "tests/contracts/test_queries.py")
PROTOCOL = ("tests/protocol",)
LIES = ("tests/attacks/test_lies.py", "tests/attacks/test_mask_sets.py",
        "tests/attacks/test_drop_outs.py", "tests/attacks/test_active_lies.py")  # fmt: skip
WIDE = (
    "tests/mutations/test_mutations.py", "tests/mutations/test_tree_mutations.py",
    "tests/attacks/test_lies.py", "tests/attacks/test_round_lies.py",
    "tests/attacks/test_tree_lies.py", "tests/attacks/test_mask_sets.py",
    "tests/attacks/test_drop_outs.py", "tests/attacks/test_tree_drop_outs.py",
    "tests/attacks/test_choice_lies.py", "tests/attacks/test_evaluation_lies.py",
    "tests/attacks/test_witnesses.py", "tests/attacks/test_approval_lies.py",
    "tests/attacks/test_wide_noise.py", "tests/attacks/test_dear_messages.py",
    "tests/attacks/test_active_lies.py", "tests/attacks/test_label_limits.py",
    "tests/contracts/test_spending.py", "tests/contracts/test_queries.py",
    "tests/contracts/test_federations.py", "tests/contracts/test_weights.py",
    "tests/data/test_persons.py", "tests/audit/test_verification.py", "tests/protocol",
    "tests/privacy", "tests/queries", "tests/party", "tests/coordinator", "tests/model",
    "tests/statistical", "tests/golden", "tests/oracle/test_every_model.py",
)  # fmt: skip
TARGETS: dict[str, tuple[str, ...]] = {
    "hedgerow.privacy.noise.mechanisms": NOISE,
    "hedgerow.privacy.noise.bernoulli": ("tests/statistical/test_discrete_laplace.py", *NOISE),
    "hedgerow.privacy.noise.poisson_sampling": ("tests/statistical/test_sampling.py",),
    "hedgerow.privacy.accounting.gaussian": ACCOUNTING,
    "hedgerow.privacy.accounting.gaussian_budget": ACCOUNTING,
    "hedgerow.privacy.accounting.path_budget": ACCOUNTING,
    "hedgerow.privacy.accounting.paths": ACCOUNTING,
    "hedgerow.privacy.accounting.mixed": ACCOUNTING,
    "hedgerow.privacy.accounting.pure": ACCOUNTING,
    "hedgerow.privacy.accounting.rounds": ACCOUNTING,
    "hedgerow.privacy.accounting.budget": ACCOUNTING,
    "hedgerow.privacy.accounting.accountant": ACCOUNTING,
    "hedgerow.privacy.ledger.reservation": LEDGER,
    "hedgerow.privacy.ledger.spending": LEDGER,
    "hedgerow.privacy.ledger.verify": LEDGER,
    "hedgerow.privacy.ledger.line": LEDGER,
    "hedgerow.privacy.ledger.gaps": LEDGER,
    "hedgerow.privacy.ledger.witnesses": ("tests/attacks/test_witnesses.py", *LEDGER),
    "hedgerow.queries.calibration": QUERIES,
    "hedgerow.queries.base": QUERIES,
    "hedgerow.queries.gradients": QUERIES,
    "hedgerow.queries.label_sums": QUERIES,
    "hedgerow.queries.leaf_sums": QUERIES,
    "hedgerow.queries.column_sums": QUERIES,
    "hedgerow.queries.column_counts": QUERIES,
    "hedgerow.queries.node_histograms": QUERIES,
    "hedgerow.queries.class_histograms": QUERIES,
    "hedgerow.queries.impurity_bounds": QUERIES,
    "hedgerow.queries.split_choices": QUERIES,
    "hedgerow.queries.strategy": QUERIES,
    "hedgerow.model.losses": ("tests/model/test_losses.py", *QUERIES),
    "hedgerow.model.number_losses": ("tests/model/test_losses.py", *QUERIES),
    "hedgerow.model.trust": ("tests/model/test_trust.py", *LIES),
    "hedgerow.data.persons": ("tests/data/test_persons.py",),
    "hedgerow.data.weights": ("tests/contracts/test_weights.py",),
    "hedgerow.protocol.masks": PROTOCOL,
    "hedgerow.protocol.mask_graph": PROTOCOL,
    "hedgerow.protocol.joined": (*PROTOCOL, *LIES),
    "hedgerow.protocol.handshake": (*PROTOCOL, *LIES),
    "hedgerow.protocol.identity": (*PROTOCOL, *LIES),
    "hedgerow.party.party": LIES,
    "hedgerow.party.run": LIES,
    "hedgerow.party.answering": LIES,
    "hedgerow.party.limits": ("tests/attacks/test_lies.py", "tests/attacks/test_label_limits.py"),
    "hedgerow.coordinator.gate": ("tests/mutations", *LIES),
    "hedgerow.coordinator.federation": LIES,
}
