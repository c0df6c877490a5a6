"""Defects that were once planted or made by people: `make mutants` always tries them.

Each is a line of the source as it stands and what it was, or would be, with the defect. A test
looks whether the source still has them, so none is forgotten when code is written anew.
"""

from __future__ import annotations

from tests.mutations.operators import NAMED, Mutant

_WRITTEN: dict[str, tuple[str, str, str]] = {
    "noise narrower than the floor is drawn": (
        "hedgerow.privacy.noise.mechanisms",
        "if not math.isfinite(sigma_steps) or sigma_steps < least:",
        "if not math.isfinite(sigma_steps):",
    ),
    "the floor is checked for the widest block only": (
        "hedgerow.queries.calibration",
        "    mechanisms.check_sigma(min(sigmas), plan.budget.floor)\n",
        "",
    ),
    "the clip is no part of what kept histograms are of": (
        "hedgerow.queries.node_histograms",
        "what = (self.loss, self.update, self.clip, self.ensemble)",
        "what = (self.loss, self.update, self.ensemble)",
    ),
    "the sampling rate is rounded up": (
        "hedgerow.privacy.noise.poisson_sampling",
        "math.floor(self.draw.rate * 2**32)",
        "math.ceil(self.draw.rate * 2**32)",
    ),
    "a further attempt asks at the full price of its slot": (
        "hedgerow.coordinator.gate",
        "mu, part = self._plan.budget.retry(index, slot.mu, query)",
        "mu, part = slot.mu, 1.0",
    ),
    "a short plan may have a million slots": (
        "hedgerow.privacy.accounting.plan_reading",
        "1 <= repeat <= MAX_SLOTS - len(slots)",
        "1 <= repeat",
    ),
    "every round of a plan may be of another kind": (
        "hedgerow.privacy.accounting.rounds",
        "            and len(rounds) <= MOST_KINDS\n",
        "",
    ),
    "a loss that is no text is looked up": (
        "hedgerow.model.losses",
        "if not isinstance(name, str) or len(name) > 20:",
        "if len(name) > 20:",
    ),
    "a party may have the name of an option": (
        "hedgerow.protocol.identity",
        'NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")',
        'NAME = re.compile(r"[a-z0-9-]{1,40}")',
    ),
    "lengths of arrays wrap around": (
        "hedgerow.model.stacking",
        "n, n_words = sum(nodes.tolist()), sum(words.tolist())",
        "n, n_words = int(nodes.sum()), int(words.sum())",
    ),
    "two federations in turn take each other's newest keys for their own": (
        "hedgerow.protocol.handshake",
        "        if not self._lasts:\n            return self._known\n",
        "",
    ),
}


def named_defects() -> list[Mutant]:
    return [
        Mutant(module, 0, NAMED, before, after, -1, label)
        for label, (module, before, after) in _WRITTEN.items()
    ]
