"""What carries messages between coordinator and parties, and the folder of a site.

To add one: a class that implements `protocol.engine.Engine`, `testing.check_federation` over it,
and a line in `cli/parties.py`, which opens engines by name.

local.py          parties of this process
local_session.py  sessions among parties of this process
nvflare/          sites over NVFlare
dask/             one owner's table on a Dask cluster
sockets.py        messages between processes of one site
site.py           the folder of one site: key, roster, ledger, sockets
"""
