"""What carries messages between coordinator and parties, and the folder of a site.

To add one: a class that implements `protocol.engine.Engine`, `testing.check_federation` over it,
and a line in `cli/parties.py`, which opens engines by name.

local.py          parties of this process
local_session.py  sessions among parties of this process
grpc/             sites over one port, parties dial out
relay.py          the socket between whoever drives a run and whatever carries its messages
switchboard.py    a relay beside the coordinator: messages by party to a runtime's nodes
party_end.py      a relay beside a party: a runtime's messages to the party's own process
nvflare/          the relay through a stock NVFlare
flower/           the relay through a stock Flower
cards.py          what people carry between sites: cards, rosters, phrases
dask/             one owner's table on a Dask cluster
sockets.py        messages between processes of one site
site.py           the folder of one site: key, roster, ledger, sockets
"""
