"""The federation of one history: its machines, their network, the rules and the liar."""

from __future__ import annotations

from hedgerow.testing.simulation.faults import COORDINATOR
from hedgerow.testing.simulation.invariants import Invariants
from hedgerow.testing.simulation.lies import Liar
from hedgerow.testing.simulation.machines import CoordinatorMachine, PartyMachine, roster_of
from hedgerow.testing.simulation.network import Network
from hedgerow.testing.simulation.scenarios import Scenario, row_words
from hedgerow.testing.simulation.world import World


class Setting:
    """Who is there, and what is watched."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world, self.scenario = world, scenario
        self.rules = Invariants(world)
        self.rules.secret_words = row_words(scenario)
        self.coordinator = CoordinatorMachine(world)
        tables, schema = scenario.tables, scenario.schema
        self.parties = {
            name: PartyMachine(world, name, tables[name], schema, scenario.limits[name])
            for name in scenario.parties
        }
        world.machines = {**self.parties, COORDINATOR: self.coordinator}
        world.disk.shared = scenario.interleaved
        self.network = Network(world, self.parties, scenario.connected)
        self.network.on_reply = self._replied
        self.rules.honest_joins = self.network.honest_joins
        self.roster = roster_of(self.parties, self.coordinator.identity, scenario.trust)
        identity, foreign = self.coordinator.identity, self.rules.foreign
        self.liar = Liar(world, self.network, identity, scenario, self.roster, foreign)
        self.deceived = False  # parties were lied to, or an operator meddled

    def _replied(self, name: str, asked: bytes, reply: bytes) -> None:
        self.rules.replied(name, self.parties[name], asked, reply)
