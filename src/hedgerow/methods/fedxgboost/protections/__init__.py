"""How the statistics of splits are protected: one file per protection, found by name.

base.py       what a protection has to do, on either side
plain.py      `none` and `ldp`
encrypted.py  `paillier`
smm.py        what the two matrix protections share
smm1.py       `smm-1` (algorithms 1 and 2)
smm2.py       `smm-2` (algorithms 3 to 5)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.methods.fedxgboost.asking import Asking
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.losses import Loss

if TYPE_CHECKING:
    from hedgerow.methods.fedxgboost.bins import Bins
    from hedgerow.methods.fedxgboost.protections.base import ActiveSide, PassiveSide

_SIDES = {  # protection: module, active and passive side
    "none": ("plain", "PlainActive", "PlainPassive"),
    "ldp": ("plain", "LdpActive", "PlainPassive"),
    "smm-1": ("smm1", "Smm1Active", "Smm1Passive"),
    "smm-2": ("smm2", "Smm2Active", "Smm2Passive"),
    "paillier": ("encrypted", "PaillierActive", "PaillierPassive"),
}


def active_side(asking: Asking, settings: VerticalSettings, loss: Loss, target: Any) -> ActiveSide:
    """The active party's half of the protection that was agreed on."""
    side: ActiveSide = _class(settings, 1)(asking, settings, loss, target)
    return side


def passive_side(bins: Bins, settings: VerticalSettings, n_outputs: int) -> PassiveSide:
    """A passive party's half of it."""
    side: PassiveSide = _class(settings, 2)(bins, settings, n_outputs)
    return side


def _class(settings: VerticalSettings, place: int) -> Any:
    names = _SIDES[settings.protection]
    return getattr(import_module(f"{__name__}.{names[0]}"), names[place])
