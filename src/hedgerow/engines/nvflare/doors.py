"""Which messages NVFlare's processes of a house take: those that carrying bytes needs, no others.

`python -m hedgerow.engines.nvflare.doors MODULE ...` runs one of NVFlare's own programs with
closed doors. Left to itself, NVFlare 2.9 asks for rights only if the sender's own headers say so,
relays messages between parties, and has requests that read and delete files or stop processes; so
whoever reaches a house would own the account that it runs under. What is changed, by assignment:

- `CoreCell._process_received_msg`, through which every message comes in: `refusal` below decides
  before anything of it is unpacked. Senders are known by the certificate of their connection.
- `ClientRequestProcessors.request_processors`, a party's requests from the coordinator: only those
  that start, end and count jobs. The one that deploys a job is answered by `launcher.JobDeployer`.
- `Workspace._check_job_id`: a job is named by a UUID, so that no other folder can be meant.
"""

from __future__ import annotations

import inspect
import logging
import re
import runpy
import sys
from collections.abc import Callable
from typing import Any

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey as Header
from nvflare.fuel.f3.cellnet.defs import MessageType
from nvflare.fuel.f3.streaming.stream_const import (
    STREAM_ACK_TOPIC,
    STREAM_CHANNEL,
    STREAM_DATA_TOPIC,
    STREAM_ERROR_TOPIC,
)
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey as StreamHeader

from hedgerow.engines.nvflare.hardening import ADMIN, AUX_TOPIC
from hedgerow.errors import HedgerowError

log = logging.getLogger("hedgerow.engines.nvflare.doors")
VERSION = "2.9."
JOB_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PROGRAMS = (
    "nvflare.private.fed.app.server.server_train",
    "nvflare.private.fed.app.server.runner_process",
    "nvflare.private.fed.app.client.client_train",
    "nvflare.private.fed.app.client.worker_process",
)
_COORDINATOR = "server"  # so NVFlare calls it; its jobs are server.JOB, and those of p are p.JOB
_ADMIN = re.compile(r"_admin_[0-9a-f-]{36}")
_KEPT_LOG_LINES = 200  # of refusals: a stranger shall not fill the disk

_Route = tuple[str, str]  # channel and topic, in NVFlare's words
_ANY = "*"
_BYE = ("cellnet.channel", "bye")
_PROGRESS = {(STREAM_CHANNEL, STREAM_ACK_TOPIC), (STREAM_CHANNEL, STREAM_ERROR_TOPIC)}
_ANSWER = ("return_only", _ANY)
_AUX = "aux_communication"


def _routes(channel: str, *topics: str) -> set[_Route]:
    return {(channel, topic) for topic in topics}


# Who takes which requests from whom. Both are "coordinator", "party", a job of one, or "admin".
_TAKEN: dict[tuple[str, str], set[_Route]] = {
    ("party", "coordinator"): {("admin", "admin"), _BYE, *_PROGRESS},
    ("party", "party job"): {("admin", "train.notify_job_status"), _BYE},
    ("party job", "party"): {*_routes("client_command", "abort", "check_status"), _BYE},
    ("party job", "coordinator"): {_BYE, *_PROGRESS},
    ("party job", "coordinator job"): {
        *_routes(_AUX, AUX_TOPIC, "__end_run__"),
        _ANSWER,
        *_PROGRESS,
    },
    ("coordinator", "party"): {
        *_routes("task", "challenge", "register", "heart_beat", "quit", "report_job_failure"),
        _BYE,
        *_PROGRESS,
    },
    ("coordinator", "party job"): {_BYE},
    ("coordinator", "coordinator job"): {
        *_routes("server_parent_listener", "get_clients", "heartbeat", "update_run_status"),
        _BYE,
        _ANSWER,
        *_PROGRESS,
    },
    ("coordinator", "admin"): {
        *_routes("task", "challenge", "register"),
        ("hci_channel", "command"),
        *_routes(_AUX, "ObjectStreamer.Request", "ObjectStreamer.Abort"),
        _BYE,
        _ANSWER,
        *_PROGRESS,
    },
    ("coordinator job", "coordinator"): {("server_command", _ANY), _BYE, _ANSWER, *_PROGRESS},
    ("coordinator job", "party"): _PROGRESS,
    ("coordinator job", "party job"): {
        *_routes(_AUX, "__sync_runner__", "__job_heartbeat__"),
        ("server_command", "get_task"),
        _ANSWER,
        *_PROGRESS,
    },
}


def refusal(me: str, peer: str, certified: str, header: Callable[[str], Any]) -> str:
    """Why this message is not taken; empty if it is.

    Parameters
    ----------
    me, peer : NVFlare's names of this process and of the one at the other end of the connection
    certified : the name in the peer's certificate; NVFlare has checked that `peer` belongs to it
    header : the headers of the message, all of which the sender chose
    """
    origin, destination = header(Header.ORIGIN), header(Header.DESTINATION)
    if not isinstance(origin, str) or not isinstance(destination, str):
        return "it does not say from whom and for whom it is"
    if not certified or certified == "N/A":
        return "it came without a certificate"
    if _kind(peer) == "admin" and certified != ADMIN:
        return "it poses as the administrator"
    if header(Header.CONN_URL):
        return "it asks for a connection to another address"
    if _house(origin) != _house(peer) and peer != me.rpartition(".")[0]:
        return "its sender is not who it says"
    houses = {_house(me), _COORDINATOR}
    if _house(me) != _COORDINATOR and not {_house(origin), _house(peer)} <= houses:
        return "it comes from another party"
    if _COORDINATOR not in (ends := {_house(origin), _house(destination)}) and len(ends) > 1:
        return "it is for another party"
    if destination != me:
        return "" if _kind(origin) != "admin" else "an administrator speaks to the coordinator only"
    if header(Header.MSG_TYPE) in (MessageType.REPLY, MessageType.RETURN):
        return ""  # NVFlare drops those that nobody waits for
    return _refused_route(_TAKEN.get((_kind(me), _kind(origin)), set()), origin, header)


def _refused_route(taken: set[_Route], origin: str, header: Callable[[str], Any]) -> str:
    channel, topic = header(Header.CHANNEL), header(Header.TOPIC)
    if (channel, topic) == (STREAM_CHANNEL, STREAM_DATA_TOPIC):  # which say what they are for
        channel, topic = header(StreamHeader.CHANNEL), header(StreamHeader.TOPIC)
    elif _house(origin) != _COORDINATOR and header(StreamHeader.ERROR_TYPE) == "BlobSizeError":
        return "NVFlare would end the job's process on it"
    if (channel, topic) in taken or (channel, _ANY) in taken:
        return ""
    return f"requests of this kind are not answered here: {channel!s:.40} {topic!s:.40}"


def _house(name: str) -> str:
    return name.partition(".")[0]


def _kind(name: str) -> str:
    if _ADMIN.fullmatch(name):
        return "admin"
    who = "coordinator" if _house(name) == _COORDINATOR else "party"
    return f"{who} job" if "." in name else who


def close_doors() -> None:
    """Change NVFlare as said above, or refuse to run with it."""
    import nvflare

    found = str(nvflare.__version__)
    try:
        if not found.startswith(VERSION):
            raise AttributeError(f"it is not of version {VERSION}x")
        _guard_messages()
        _guard_requests()
        _guard_names()
    except (ImportError, AttributeError) as error:
        raise HedgerowError(
            f"NVFlare {found} is not the one that hedgerow knows how to close against strangers "
            f"({error}). Nothing was started. Run: pip install 'hedgerow[nvflare]'"
        ) from error


def _guard_messages() -> None:
    from nvflare.fuel.f3.cellnet.core_cell import CoreCell

    take = CoreCell._process_received_msg
    if list(inspect.signature(take).parameters) != ["self", "endpoint", "connection", "message"]:
        raise AttributeError("messages come in by another way")
    lines = iter(range(_KEPT_LOG_LINES))

    def guarded(self: Any, endpoint: Any, connection: Any, message: Any) -> None:
        if connection is not None:  # else it is from this same process
            certified = str(connection.get_conn_properties().get("peer_cn") or "")
            why = refusal(self.get_fqcn(), endpoint.name, certified, message.get_header)
            if why:
                if next(lines, None) is not None:
                    log.warning("refused a message of %s (%s): %s", endpoint.name, certified, why)
                return
        take(self, endpoint, connection, message)

    CoreCell._process_received_msg = guarded


def _guard_requests() -> None:
    from nvflare.private.fed.client import client_req_processors as requests

    requests.ClientRequestProcessors.request_processors = [
        requests.CheckResourceProcessor(),
        requests.CancelResourceProcessor(),
        requests.DeployProcessor(),
        requests.StartJobProcessor(),
        requests.AbortAppProcessor(),
        requests.NotifyJobStatusProcessor(),
        requests.ClientStatusProcessor(),
    ]


def _guard_names() -> None:
    from nvflare.apis.workspace import Workspace

    check = Workspace._check_job_id

    def only_jobs(job_id: object) -> Any:
        if not JOB_NAME.fullmatch(str(job_id)):
            raise ValueError("this is not the name of a job")
        return check(job_id)

    Workspace._check_job_id = staticmethod(only_jobs)


def main() -> None:
    program = sys.argv.pop(1)
    if program not in PROGRAMS:
        sys.exit(f"{program} is not run by hedgerow")
    close_doors()
    runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
