"""What leaves a party for a question that was charged: exact sums, its noise, its mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.party.run import OpenedRun
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.protocol.messages import Ask, Refusal
from hedgerow.protocol.replies import Answer


def answer_of(
    party: str,
    ask: Ask,
    run: OpenedRun,
    request: str,
    exact: NDArray[np.int64],
    keys: MaskKeys,
    rows: int,
) -> Answer:
    """Exact sums, then this party's noise and mask. A zero under the same mask is a check."""
    total, check = exact.view(np.uint64), 0
    trust, source = run.plan.privacy.trusted, "none"
    if not trust.exact_sums:
        blocks = [block.size for block in ask.query.blocks]
        honest = ask.n_parties(run.roster) - ask.colluding
        share = trust.share(honest, rows)
        if ask.noise.mechanism == "laplace":
            total = mechanisms.add_laplace(total, blocks, ask.noise.sigmas, honest)
        else:
            total = mechanisms.add_gaussian(total, blocks, ask.noise.sigmas, share)
        source = mechanisms.source_name()
    if trust.masked:
        about = (run.plan.hash, run.plan.schema_hash, ask.slot, ask.attempt, request)
        context = Context(*about, run.summed(ask))
        mask = keys.mask(party, context, len(total) + 1)
        total, check = total + mask[:-1], int(mask[-1])
    # Row counts are public under `nobody` and never leave under the other trusts.
    return Answer(party, source, total, check, rows if trust.local else 0)


def stored_answer(
    party: str, ask: Ask, ledger: Ledger, charged: Line, request: str
) -> Answer | None:
    """A context is answered by one message ever; asking again gives the same bytes, free."""
    if charged.values["request"] != request:
        raise Refusal("answered-differently")
    for line in ledger.lines(party, "answer", ask.run, ask.slot):
        if line.attempt == ask.attempt:
            return Answer.from_body(line.arrays["body"].tobytes())
    return None


def sampler_for(
    party: str, ask: Ask, run: OpenedRun, ledger: Ledger, secret: Callable[[], bytes]
) -> PoissonSampler | None:
    """The sampler of the slot's round, where the plan samples.

    Rate and round come from the plan that was reserved, never from the question.
    """
    draw = run.plan.budget.draw_of(ask.slot)
    if draw is None:
        return None
    # The line that reserved the plan is unlike any of another ledger: whoever runs a plan again
    # with another ledger, or after losing this one, gets other rows.
    reserved = ledger.lines(party, "reserve", ask.run)[0].hash
    return PoissonSampler.of(secret(), (party, run.plan.hash, reserved), draw)
