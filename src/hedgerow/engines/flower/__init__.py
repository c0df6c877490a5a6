"""A relay through a stock Flower deployment: public interfaces only. Needs the extra `flower`.

A Flower app of two components carries bytes: the ServerApp beside the coordinator, the ClientApp
beside every party. Neither reads a message; the sockets are named by who runs the machines, and
never by who submits the run.

client.py     a party's end
server.py     the coordinator's end
__main__.py   writes the app's folder, to give to `flwr run`
"""

RECORD = "hedgerow"
FIELD = "data"
