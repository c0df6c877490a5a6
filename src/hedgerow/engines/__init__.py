"""What carries messages between coordinator and parties, and nothing else.

local.py          parties of this process
local_session.py  sessions among parties of this process
nvflare/          sites over NVFlare
dask/             one owner's table on a Dask cluster
sockets.py        messages between processes of one site
site.py           the folder of one site: key, roster, ledger, sockets
"""
