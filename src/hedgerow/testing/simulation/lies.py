"""A coordinator that lies, with its own key."""

from __future__ import annotations

from hedgerow.protocol.identity import Identity, Roster
from hedgerow.testing.simulation.faults import Fault
from hedgerow.testing.simulation.network import Network
from hedgerow.testing.simulation.scenarios import Scenario
from hedgerow.testing.simulation.world import World


class Liar:
    def __init__(
        self, world: World, network: Network, identity: Identity, scenario: Scenario, roster: Roster
    ) -> None:
        self.world = world

    def lie(self, fault: Fault) -> None:
        pass
