"""What the default method is asked to show, one line each: yes, no, or not measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accuracy.cells import half_of
from accuracy.data import BINARY, REGRESSION, SBDT, SIX, maddock_best, main_measure, sbdt_line
from accuracy.methods import AUTO, EBM, XGBOOST
from accuracy.report import Figure, Results

XGBOOST_GAP, EBM_LEAD, MOST_ROUNDS, MOST_BYTES, MOST_ECE = 0.010, 0.01, 16, 1_000_000, 0.02


@dataclass(frozen=True)
class Line:
    """One requirement on one dataset (and epsilon); `holds` is None where it was not measured."""

    group: str
    what: str
    holds: bool | None
    shown: str
    required: bool = True

    @property
    def word(self) -> str:
        if self.holds is None:
            return "not measured"
        return "yes" if self.holds else "no"


def lines_of(results: Results) -> list[Line]:
    return [
        *_maddock(results),
        *_xgboost(results),
        *_sbdt(results),
        *_ebm(results),
        *_traffic(results),
        *_calibration(results),
    ]


def _line(
    group: str, what: str, lead: Figure | None, holds: bool | None, required: bool = True
) -> Line:
    shown = "" if lead is None else f"better by {lead.signed}, {lead.n} splits"
    return Line(group, what, None if lead is None else holds, shown, required)


def _maddock(results: Results) -> Iterator[Line]:
    group = "epsilon 0.1 at least the best of Maddock et al. at epsilon 1"
    for dataset, best in maddock_best().items():
        lead = results.lead_over(dataset, 0.1, best)
        yield _line(group, f"{dataset} ({best:.4f})", lead, lead is not None and lead.mean >= 0)


def _xgboost(results: Results) -> Iterator[Line]:
    group = f"epsilon 1 within {XGBOOST_GAP:.3f} AUC of XGBoost on the same splits"
    for dataset in BINARY:
        lead = results.lead(dataset, XGBOOST, 1.0)
        yield _line(group, dataset, lead, lead is not None and lead.mean >= -XGBOOST_GAP)


def _sbdt(results: Results) -> Iterator[Line]:
    behind = "never behind S-BDT by more than two standard errors, its setting"
    ahead = "ahead of S-BDT, its setting"
    dream = "level with S-BDT at half its epsilon (two standard errors; a wish)"
    for dataset in SBDT:
        for epsilon, published in sbdt_line(dataset).items():
            lead = results.lead_over(dataset, epsilon, published)
            what = f"{dataset} at {epsilon:g} ({published:.4f})"
            yield _line(behind, what, lead, _level(lead))
    for epsilon in (0.1, 0.5):
        lead = results.lead_over("sbdt-adult", epsilon, sbdt_line("sbdt-adult")[epsilon])
        yield _line(ahead, f"sbdt-adult at {epsilon:g}", lead, lead is not None and lead.mean > 0)
    for dataset in SBDT:
        for epsilon, published in sbdt_line(dataset).items():
            half = half_of(epsilon)
            lead = results.lead_over(dataset, half, published)
            what = f"{dataset}: ours at {half:g}, S-BDT at {epsilon:g}"
            yield _line(dream, what, lead, _level(lead), required=False)


def _level(lead: Figure | None) -> bool | None:
    """Not behind by more than two standard errors; one split has none, so it says nothing."""
    if lead is None or not lead.error >= 0:
        return None
    return lead.mean >= -2 * lead.error


def _ebm(results: Results) -> Iterator[Line]:
    group = f"above DP-EBM, by at least {EBM_LEAD:.2f} AUC at epsilon 0.1"
    for dataset in (*BINARY, *REGRESSION):
        if not results.epsilons(dataset):
            yield Line(group, dataset, None, "")
        for epsilon in results.epsilons(dataset):
            lead = results.lead(dataset, EBM, epsilon)
            wide = epsilon == 0.1 and main_measure(dataset) == "auc"
            holds = lead is not None and (lead.mean >= EBM_LEAD if wide else lead.mean > 0)
            yield _line(group, f"{dataset} at {epsilon:g}", lead, holds)


def _traffic(results: Results) -> Iterator[Line]:
    group = f"at most {MOST_ROUNDS} rounds, and 1 MB sent per party (not asked of seven classes)"
    for dataset in (*BINARY, *REGRESSION, "covtype7"):
        found = [t for e in results.epsilons(dataset) if (t := results.traffic(dataset, e))]
        if not found:
            yield Line(group, dataset, None, "")
            continue
        rounds, sent = max(r for r, _ in found), max(b for _, b in found)
        small = sent <= MOST_BYTES or main_measure(dataset) == "accuracy"
        shown = f"at most {rounds} rounds, {sent / 1e6:.3f} MB"
        yield Line(group, dataset, rounds <= MOST_ROUNDS and small, shown)


def _calibration(results: Results) -> Iterator[Line]:
    group = f"calibration error at most {MOST_ECE:.2f} at epsilon 1"
    for dataset in SIX:
        found = results.figure(dataset, AUTO, 1.0, "ece")
        shown = "" if found is None else f"{found}, {found.n} splits"
        holds = None if found is None else found.mean <= MOST_ECE
        yield Line(group, dataset, holds, shown)
