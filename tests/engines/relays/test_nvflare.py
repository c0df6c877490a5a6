"""NVFlare's components of the relay, without NVFlare's processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from hedgerow.engines import nvflare
from hedgerow.engines.nvflare import HedgerowRecipe
from hedgerow.engines.nvflare.controller import AuxMessages, RelayController
from hedgerow.engines.nvflare.executor import FIELD, TOPIC, RelayExecutor
from hedgerow.engines.party_end import Answer, Question
from hedgerow.errors import HedgerowError, SettingsError
from tests.engines.relays.played import PlayedParties


class PlayedEngine:
    """The server's engine as far as the relay uses it: replies by client, codes before them."""

    def __init__(self, codes: dict[str, list[str]]) -> None:
        self.codes = codes
        self.sent: list[tuple[list[str], bytes]] = []

    def get_clients(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self.codes]

    @contextmanager
    def new_context(self) -> Iterator[object]:
        yield object()

    def send_aux_request(
        self, targets: list[str], topic: str, request: Shareable, timeout: float, fl_ctx: object,
        optional: bool = False,
    ) -> dict[str, Shareable]:  # fmt: skip
        assert topic == TOPIC
        self.sent.append((sorted(targets), request[FIELD]))
        return {name: self._reply(name, request[FIELD]) for name in targets}

    def _reply(self, name: str, data: bytes) -> Shareable:
        code = self.codes[name].pop(0) if self.codes[name] else ReturnCode.OK
        reply = make_reply(code)
        if code == ReturnCode.OK:
            reply[FIELD] = b"from " + name.encode() + b": " + data
        return reply


def test_a_site_that_is_still_starting_is_sent_the_message_again() -> None:
    engine = PlayedEngine({"a": [], "b": [ReturnCode.TOPIC_UNKNOWN, ReturnCode.TOPIC_UNKNOWN]})
    found = AuxMessages(engine).carry({"a": b"x", "b": b"x"}, 20.0)
    assert {name: carried.body for name, carried in found.items()} == {
        "a": b"from a: x",
        "b": b"from b: x",
    }
    assert engine.sent == [(["a", "b"], b"x"), (["b"], b"x"), (["b"], b"x")]


def test_sites_that_cannot_be_reached_are_told_in_words_and_do_not_stop_the_others() -> None:
    engine = PlayedEngine({"a": [], "b": [ReturnCode.TIMEOUT], "c": ["SOMETHING_NEW"]})
    found = AuxMessages(engine).carry(dict.fromkeys(("a", "b", "c", "stranger"), b"x"), 5.0)
    assert found["a"].body == b"from a: x"
    assert "in time" in found["b"].problem
    assert "SOMETHING_NEW" in found["c"].problem
    assert "could not reach" in found["stranger"].problem
    assert engine.sent == [(["a", "b", "c"], b"x")]


def test_different_messages_go_to_their_own_sites() -> None:
    engine = PlayedEngine({"a": [], "b": [], "c": []})
    found = AuxMessages(engine).carry({"a": b"x", "b": b"y", "c": b"x"}, 5.0)
    assert [found[n].body for n in "abc"] == [b"from a: x", b"from b: y", b"from c: x"]
    assert sorted(engine.sent) == [(["a", "c"], b"x"), (["b"], b"y")]


def context_of(folder: Path, handlers: dict[str, Any]) -> Any:
    """What NVFlare gives a component: the site's own folder, and where to register handlers."""
    workspace = SimpleNamespace(get_site_config_dir=lambda: str(folder))
    engine = SimpleNamespace(register_aux_message_handler=handlers.__setitem__)
    return SimpleNamespace(get_workspace=lambda: workspace, get_engine=lambda: engine)


def test_an_executor_hands_bytes_to_the_socket_that_the_sites_own_file_names(
    tmp_path: Path,
) -> None:
    handlers: dict[str, Any] = {}
    context = context_of(tmp_path, handlers)
    executor = RelayExecutor()
    with pytest.raises(SettingsError, match="the administrator of this machine writes it"):
        executor.handle_event(EventType.START_RUN, context)
    with PlayedParties(tmp_path, ("north",)) as parties:
        place = json.dumps(str(parties.sockets["north"]))
        (tmp_path / "hedgerow.toml").write_text(f'format = 1\nparty = "north"\nsocket = {place}\n')
        executor.handle_event(EventType.START_RUN, context)
        request = Shareable()
        request[FIELD] = Question(b"hello", 5.0).to_bytes()
        request["socket"] = "/somewhere/else"  # nobody looks at it
        reply = handlers[TOPIC](TOPIC, request, context)
    assert reply.get_return_code() == ReturnCode.OK
    assert Answer.from_bytes(reply[FIELD]) == Answer("north", b"echo hello")


@pytest.mark.parametrize("data", [None, "text", b"garbage"])
def test_an_executor_refuses_what_is_no_question(tmp_path: Path, data: object) -> None:
    handlers: dict[str, Any] = {}
    (tmp_path / "hedgerow.toml").write_text('format = 1\nparty = "north"\nsocket = "none"\n')
    RelayExecutor().handle_event(EventType.START_RUN, context_of(tmp_path, handlers))
    request = Shareable()
    request[FIELD] = data
    reply = handlers[TOPIC](TOPIC, request, None)
    assert reply.get_return_code() == ReturnCode.BAD_REQUEST_DATA


def test_a_controller_without_the_servers_own_file_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"hedgerow\.toml"):
        RelayController().start_controller(context_of(tmp_path, {}))


def test_the_job_holds_two_class_names_and_no_code(tmp_path: Path) -> None:
    HedgerowRecipe(name="hedgerow", min_clients=3, idle_seconds=30.0).export(str(tmp_path))
    files = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    config = "hedgerow/app/config"
    assert files == {
        "hedgerow/meta.json",
        f"{config}/config_fed_server.json",
        f"{config}/config_fed_client.json",
    }
    server = json.loads((tmp_path / config / "config_fed_server.json").read_text())
    client = json.loads((tmp_path / config / "config_fed_client.json").read_text())
    (workflow,), (executor,) = server["workflows"], client["executors"]
    assert workflow["path"].endswith("controller.RelayController")
    assert workflow["args"] == {"idle_seconds": 30.0}
    assert executor["executor"] == {
        "path": f"{RelayExecutor.__module__}.RelayExecutor",
        "args": {},
    }


def test_without_nvflare_the_recipe_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hedgerow.engines.nvflare.recipe", None)
    with pytest.raises(HedgerowError, match=r"pip install 'hedgerow\[nvflare\]'"):
        _ = nvflare.HedgerowRecipe
    with pytest.raises(AttributeError):
        _ = nvflare.nothing_of_that_name


@pytest.mark.parametrize(("clients", "idle"), [(0, 600.0), (3, 0.0), (3, -1.0)])
def test_a_job_that_could_not_run_is_refused(clients: int, idle: float) -> None:
    with pytest.raises(SettingsError, match="above zero"):
        HedgerowRecipe("hedgerow", clients, idle)
