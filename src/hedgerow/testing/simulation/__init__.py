"""A whole federation simulated from one seed: network, disk, clock, operators and a liar.

Protocol, gate, parties, ledgers, plans and handshakes are those of production, in one thread.
It needs `pip install 'hedgerow[simulation]'`.

__main__.py    the command: one history told, or a campaign
accidents.py   what happens when a fault is due
campaign.py    many histories, counted and resumable; failing ones are shrunk
commands.py    what the coordinator runs: training, evaluation, sessions
disk.py        a disk under SQLite: writes, syncs, power failures, no room
endings.py     what must hold once all commands have ended
faults.py      what goes wrong, drawn from the seed
history.py     one history, with the operator who looks after it
invariants.py  the rules that every history keeps
kept_heads.py  what parties keep of each other's ledgers
lies.py        a coordinator that lies
machines.py    the machines of parties and coordinator, and their processes
network.py     the network, and the engine that real code sends through
randomness.py  keys, nonces and noise that follow from the seed
reading.py     bytes that travelled, read once for all machines
record.py      the file of a campaign: counts, and which seeds ran on which source
scenarios.py   parties, trust, limits and work of a history
setting.py     the federation of a history: machines, network, rules, liar
source.py      what histories are histories of: a hash of the source, its commit
states.py      what a long campaign must have met
scheduler.py   simulated time, and programs that wait
tally.py       what a set of histories added up to
world.py       all of it together, and what is recorded
"""

try:
    import apsw as _apsw
    import greenlet as _greenlet
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the simulator needs {error.name}; pip install 'hedgerow[simulation]'"
    ) from error

from hedgerow.testing.simulation.history import Outcome, simulate

del _apsw, _greenlet

__all__ = ["Outcome", "simulate"]
