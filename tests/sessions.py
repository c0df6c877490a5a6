"""Sessions in tests: roles that lie or listen, between real parties whose messages are bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local_session import LocalOutcome, local_session
from hedgerow.protocol.roles import Agreement, Step

Change = Callable[[Any], Any]


def run_roles(
    agreement: Agreement,
    make: Callable[..., Any],
    tables: Mapping[str, Rows],
    schema: Schema,
    stores: Any = None,
    changed: Mapping[str, Change] | None = None,
) -> LocalOutcome[Any]:
    """A session over packed, sealed and signed messages; some parties' roles are changed."""

    def made(name: str, *about: Any) -> Any:
        return (changed or {}).get(name, lambda role: role)(make(name, *about))

    return local_session(agreement, made, tables, schema, stores=stores, packed=True)


def delivered(steps: Mapping[str, Step]) -> dict[str, dict[str, bytes]]:
    """Messages of one step by who gets them, then by sender: for tests that change some."""
    inboxes: dict[str, dict[str, bytes]] = {name: {} for name in steps}
    for sender, step in steps.items():
        for recipient, message in step.messages.items():
            inboxes[recipient][sender] = message
    return inboxes
