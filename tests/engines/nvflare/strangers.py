"""Hostile programs on NVFlare's network, each run as a process of its own; see `test_strangers`.

    local PORT         another account of a party's machine, without a certificate
    neighbour PORT SITE another party on that machine, with its certificate
    party ROOM         another party, through an honest coordinator
    coordinator ROOM   the coordinator's own NVFlare process, changed by whoever runs it

Each reads its orders as JSON from standard input: what to send, and where to write the answers.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet.cell import Cell
from nvflare.private.admin_defs import Message
from nvflare.private.defs import new_cell_message
from nvflare.private.fed.utils.fed_utils import fobs_initialize

WAIT_SECONDS = 3.0


def send_all(cell: Any, orders: dict[str, Any]) -> None:
    """Send everything at once and write down what came back."""

    def send(order: dict[str, Any]) -> str:
        body = bytes.fromhex(order["hex"]) if "hex" in order else order.get("body", "")
        request = Message(order["topic"], body)
        for name, value in order.get("headers", {}).items():
            request.set_header(name, value)
        raw = order["channel"] == "_net_manager"  # whose messages NVFlare never cuts into streams
        reply = (cell.core_cell if raw else cell).send_request(
            channel=order["channel"],
            topic=order.get("cell_topic", "admin"),
            target=order["target"],
            request=new_cell_message(order.get("cell_headers", {}), request),
            timeout=WAIT_SECONDS,
        )
        return f"{reply.headers} {getattr(reply.payload, 'body', reply.payload)}"

    with ThreadPoolExecutor(len(orders["messages"])) as pool:
        sent = {name: pool.submit(send, order) for name, order in orders["messages"].items()}
    answers = {name: future.result() for name, future in sent.items()}
    partial = Path(orders["answers"] + ".part")
    partial.write_text(json.dumps(answers), "utf-8")
    partial.rename(orders["answers"])


def await_peer(cell: Any, name: str) -> None:
    deadline = time.monotonic() + 60.0
    while name not in cell.core_cell.agents and time.monotonic() < deadline:
        time.sleep(0.1)


def local(orders: dict[str, Any], port: str, site: str = "") -> None:
    fobs_initialize()
    if site:
        startup = Path(site) / "startup"
        credentials = {
            "ca_cert": str(startup / "rootCA.pem"),
            "client_cert": str(startup / "client.crt"),
            "client_key": str(startup / "client.key"),
        }
        cell = Cell("mallory", f"tcp://localhost:{port}", True, credentials)
    else:
        cell = Cell("p0.stranger", "", False, {}, parent_url=f"tcp://localhost:{port}")
    cell.start()
    time.sleep(2.0)
    send_all(cell, orders)
    os._exit(0)  # its threads would go on


def party(orders: dict[str, Any], room: str) -> None:
    from nvflare.private.fed.client.communicator import Communicator

    registered = Communicator.client_registration

    def hostile(self: Any, *args: Any, **words: Any) -> Any:
        found = registered(self, *args, **words)
        threading.Timer(1.0, send_all, (self.cell, orders)).start()
        return found

    Communicator.client_registration = hostile
    run("client.client_train", room, "fed_client.json", "uid=mallory")


def coordinator(orders: dict[str, Any], room: str) -> None:
    from nvflare.private.fed.server.admin import FedAdminServer

    start = FedAdminServer.start

    def attack(cell: Any) -> None:
        await_peer(cell, "p0")
        time.sleep(1.0)
        send_all(cell, orders)

    def hostile(self: Any) -> None:
        start(self)
        threading.Thread(target=attack, args=(self.cell,), daemon=True).start()

    FedAdminServer.start = hostile
    os.environ["NVFL_JOB_STORE_ROOT"] = f"{room}/jobs"
    run("server.server_train", room, "fed_server.json")


def run(module: str, room: str, config: str, *more: str) -> None:
    os.chdir(room)
    words = ("-m", room, "-s", config, "--set", "secure_train=true", *more)
    sys.argv[1:] = [*words, "org=hedgerow", "config_folder=config"]
    runpy.run_module(f"nvflare.private.fed.app.{module}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    programs = {"local": local, "neighbour": local, "party": party, "coordinator": coordinator}
    programs[role](json.load(sys.stdin), *words)
