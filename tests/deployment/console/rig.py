"""A party's service over a real ledger, and the console in front of it, inside of one process."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.approvals import PlanFolder
from hedgerow.deployment.console.party_questions import PartyQuestions
from hedgerow.deployment.console.server import ConsoleServer, ConsoleSettings
from hedgerow.deployment.service import PartyService
from hedgerow.deployment.start import Start
from hedgerow.deployment.status import StatusService
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.methods.registry import plan_for
from hedgerow.party.approvals import decide
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.request import Request
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Roster
from hedgerow.testing.clock import manual_clock
from tests.conftest import MIXED

N_ROWS = 48_211  # must never be seen by anybody but operators
LIMITS = """format = 2
delta = 1e-6
least_parties = 3
approve = "each plan"
[epsilon]
per_run = 2.0
per_month = 4.0
total = 10.0
"""
PEOPLE = {
    "Olga Operator": "operator",
    "Paula Privacy": "privacy-officer",
    "Rita Reader": "reader",
}
CONNECTION = {
    "connected": True, "since": 1_790_000_000.0, "address": "train.example.org:8002", "words": "",
    "software": "0.1.0", "attempts": 0,
}  # fmt: skip


def asked_plan(run: str, epsilon: float = 0.5, n_trees: int = 3, **request: str) -> Plan:
    plan = plan_for(
        MIXED, Privacy(epsilon, 1e-6, trust="parties"), "random-trees",
        settings={"n_trees": n_trees}, seed=1, run=run,
    )  # fmt: skip
    return replace(plan, request=Request(**request))


@dataclass
class Reply:
    """What a request got."""

    status: int
    text: str
    headers: Mapping[str, str]
    content: bytes = b""


@dataclass
class Rig:
    """A site, its ledger and the console before it."""

    site: Site
    ledger: Ledger
    server: ConsoleServer
    facts: dict[str, Any]
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def request(
        self, method: str, path: str, body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            reply = connection.getresponse()
            content = reply.read()
            told = {key.lower(): value for key, value in reply.getheaders()}
            return Reply(reply.status, content.decode("utf-8", "replace"), told, content)
        finally:
            connection.close()

    def sign_in(self, name: str) -> str:
        """The cookie of a person's session."""
        if name not in self.cookies:
            code = Accounts(self.site).make_link(name)
            reply = self.post("/enter", {"code": code})
            assert reply.status == 303, reply.text
            self.cookies[name] = reply.headers["set-cookie"].partition(";")[0]
        return self.cookies[name]

    def get(self, path: str, name: str = "") -> Reply:
        headers = {"cookie": self.sign_in(name)} if name else {}
        return self.request("GET", path, headers=headers)

    def token(self, name: str) -> str:
        session = self.sign_in(name).partition("=")[2]
        return self.server.door.form_token(session)

    def post(self, path: str, fields: Mapping[str, str], name: str = "") -> Reply:
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"http://{self.host}",
        }
        told = dict(fields)
        if name:
            headers["cookie"] = self.sign_in(name)
            told.setdefault("token", self.token(name))
        return self.request("POST", path, urlencode(told), headers)

    def log(self) -> str:
        return Path(self.server.log.baseFilename).read_text("utf-8")


def make_site(folder: Path) -> Site:
    """A party's site with limits, a roster, accounts and a remembered start."""
    site = Site.create(folder / "hospital-a", "hospital-a")
    coordinator = Site.create(folder / "coordinator", "coordinator", "train.example.org:8002")
    others = [Site.create(folder / name, name) for name in ("hospital-b", "hospital-c")]
    keys = tuple(sorted((one.name, one.identity().public) for one in (site, *others)))
    for trust in ("coordinator", "parties"):
        roster = Roster(keys, coordinator.identity().public, 1, 3, trust)
        certificate = coordinator.certificate()[1]
        site.pin(PinnedRoster("Heart Study", roster, coordinator.address, certificate))
    (site.folder / "limits.toml").write_text(LIMITS)
    accounts = Accounts(site)
    for name, role in PEOPLE.items():
        accounts.put(name, role)
    return site


def fill(site: Site, ledger: Ledger, days: tuple[int, ...] = (70, 52, 24, 9, 2)) -> None:
    """A few approved runs over the last months, some of their queries charged."""
    now = datetime.now(UTC)
    purposes = ("Readmission within 30 days", "Sepsis early warning", "Readmission within 30 days",
                "Length of stay", "Readmission within 30 days")  # fmt: skip
    askers = ("Prof. Weber, University", "Dr. Okafor, Trial Unit")
    for place, ago in enumerate(days):
        with manual_clock(now - timedelta(days=ago)):
            purpose, asker = purposes[place % 5], askers[place % 2]
            run = f"run-{place + 1:04d}"
            plan = asked_plan(run, 0.4 + 0.15 * place, purpose=purpose, asker=asker)
            ledger.append(site.name, "boot", values={"boot": place + 1})
            decide(ledger, site.name, plan, "approve", "Paula Privacy", "Covered by the vote of "
                   "the ethics board", "privacy-officer")  # fmt: skip
            reservation = Reservation(ledger, plan, site.name)
            reservation.reserve()
            for slot in range(len(plan.slots)):
                reservation.charge(slot, f"request-{slot}", 1)
            ledger.append(site.name, "refuse", f"odd-{place}", values={"word": "over-limits"})


@contextmanager
def served(
    site: Site, facts: dict[str, Any] | None = None, ledger: Ledger | None = None
) -> Iterator[Rig]:
    """The console of a site whose service runs in this process."""
    facts = facts if facts is not None else {"connection": CONNECTION, "problem": ""}
    with ExitStack() as stack:
        ledger = ledger or stack.enter_context(Ledger.open(site.ledger_path))
        start = Start()
        in_force = start.in_force(site)
        status = StatusService(site, ledger, in_force.limits, lambda: "running", lambda: facts)
        pages = PartyQuestions(
            site, start, in_force, ledger, MIXED, N_ROWS, status, lambda: time.time() - 42
        )
        service = PartyService(status, pages.questions(), pages.health)
        stack.enter_context(Listener(site.console_socket, service.handle_console))
        stack.enter_context(Listener(site.status_socket, service.handle))
        yield stack.enter_context(console_before(site, ledger, facts))


@contextmanager
def console_before(site: Site, ledger: Ledger, facts: dict[str, Any]) -> Iterator[Rig]:
    settings = ConsoleSettings(
        site.name, site.role, site.console_socket, site.folder / "console", "127.0.0.1:0"
    )
    server = ConsoleServer(settings)
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,), daemon=True)
    thread.start()
    try:
        assert ready.wait(60)
        yield Rig(site, ledger, server, facts)
    finally:
        server.stop()
        thread.join(20)


def wait_with(site: Site, plan: Plan) -> None:
    """A plan arrives as if the coordinator had asked to open it."""
    PlanFolder.of(site).keep(plan)
