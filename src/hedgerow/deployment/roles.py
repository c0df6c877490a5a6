"""What a party can do together with others without an epsilon, by name; loaded when it is used."""

from __future__ import annotations

from importlib import import_module

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.protocol.roles import Agreement, Role, RoleFactory, Store

_VERTICAL = ("hedgerow.methods.fedxgboost.run", "vertical_role")
ROLES = {  # name, as limits have it: module, what makes it
    "simfl": ("hedgerow.methods.simfl.run", "similarity_role"),
    **{
        f"fedxgboost-{protection}{merged}": _VERTICAL
        for protection in ("none", "smm-1", "smm-2", "ldp", "paillier")
        for merged in ("", "-merged")
    },
    "fedxgboost-predict": ("hedgerow.methods.fedxgboost.run", "prediction_role"),
}


def role_factories() -> dict[str, RoleFactory]:
    """Of every known role: what makes a party's side of it."""
    return dict.fromkeys(ROLES, _make)


def _make(me: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store) -> Role:
    module, name = ROLES[agreement.role]
    made: Role = getattr(import_module(module), name)(me, rows, schema, agreement, store)
    return made
