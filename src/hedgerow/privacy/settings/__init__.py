"""Settings: the promise, and those of methods by family; every interface reads these.

fields.py    fields with type, default, range and meaning
promise.py   what is promised, to whom, and how it is counted
base.py      what all families have, and groups that several share
boosting.py  settings of random-trees and the methods of Maddock et al.
methods.py   settings of the other methods, and of an evaluation
table.py     the one table of all settings that plan files and models have
"""

from hedgerow.privacy.settings.base import Settings
from hedgerow.privacy.settings.boosting import CANDIDATE_METHODS, BoostingSettings
from hedgerow.privacy.settings.fields import meanings
from hedgerow.privacy.settings.methods import (
    AutoSettings,
    DPXGBoostSettings,
    EvaluationSettings,
    PrivateTreeSettings,
)
from hedgerow.privacy.settings.promise import ACCOUNTINGS, Privacy, privacy_from, spare_for
from hedgerow.privacy.settings.table import (
    DEFAULTS,
    FAMILIES,
    MEANINGS,
    settings_from,
    settings_table,
)

__all__ = [
    "ACCOUNTINGS",
    "CANDIDATE_METHODS",
    "DEFAULTS",
    "FAMILIES",
    "MEANINGS",
    "AutoSettings",
    "BoostingSettings",
    "DPXGBoostSettings",
    "EvaluationSettings",
    "Privacy",
    "PrivateTreeSettings",
    "Settings",
    "meanings",
    "privacy_from",
    "settings_from",
    "settings_table",
    "spare_for",
]
