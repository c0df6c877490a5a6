"""A stock Flower deployment on this machine: a SuperLink and SuperNodes with TLS and keys.

It runs in an environment of its own: Flower pins other versions of what NVFlare needs.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.engines.relays.processes import end_processes, free_port, start_process

ROOT = Path(__file__).parents[3]
# As docs/runtimes.md has them: what is run here are these lines, with this machine's names.
SUPERLINK = (
    "flower-superlink --host 0.0.0.0 --port 8000 --ssl-certfile server.pem --ssl-keyfile server.key"
    " --ssl-ca-certfile ca.pem --enable-supernode-auth --disable-runtime-dependency-installation"
    " --database superlink.sqlite"
)
SUPERNODE = (
    "flower-supernode --superlink flower.example.org:8000 --root-certificates ca.pem"
    " --auth-supernode-private-key node-key"
    """ --node-config 'hedgerow-party="PARTY" hedgerow-socket="/run/hedgerow/PARTY.sock"'"""
)
REGISTER, RUN = "flwr supernode register PARTY.pub ours", "flwr run relay-app ours"
WRITE_APP = "python -m hedgerow.engines.flower relay-app"
LINES = {SUPERLINK, SUPERNODE, REGISTER, WRITE_APP, RUN}
_NO_PASSWORD = serialization.NoEncryption()


def make_environment(folder: Path) -> Path:
    """A virtual environment with hedgerow as it is here and its extra `flower`; its programs.

    Making one takes minutes: HEDGEROW_FLOWER names a folder to keep it in.
    """
    programs = Path(os.environ.get("HEDGEROW_FLOWER", folder)) / "bin"
    folder = programs.parent
    if not (programs / "flower-superlink").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = ["--editable", f"{ROOT}[flower]"]
        command = [str(programs / "python"), "-m", "pip", "install", "--quiet", *wanted]
        subprocess.run(command, check=True, capture_output=True)
    return programs


class StockFlower:
    """SuperLink and one SuperNode a party, from keys to the end. Use it in `with`."""

    def __init__(
        self, folder: Path, programs: Path, parties: Sequence[str], sockets: dict[str, Path]
    ) -> None:
        self.folder, self.port = folder, free_port()
        self.socket = folder / "relay.sock"
        self._programs, self._parties, self._sockets = programs, tuple(parties), sockets
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        write_certificates(folder)
        for party in self._parties:
            write_node_key(folder / party)
        end = f"format = 1\nsocket = {json.dumps(str(self.socket))}\n"
        (folder / "hedgerow.toml").write_text(end, "utf-8")
        (folder / "home").mkdir()
        (folder / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "ours"\n[superlink.ours]\naddress = "127.0.0.1:{self.port}"\n'
            f"root-certificates = {json.dumps(str(folder / 'ca.pem'))}\n",
            "utf-8",
        )

    def __enter__(self) -> StockFlower:
        try:
            self._start_superlink()
            for party in self._parties:
                self.flwr(self._meant(REGISTER, party))
                self._start_supernode(party)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        end_processes(self._processes)

    def submit(self, wait_seconds: float = 120.0) -> None:
        """Submit the relay's app; returns once the relay listens."""
        command = self._meant(WRITE_APP)
        subprocess.run(command, check=True, env=self._environment(), capture_output=True)
        said = self.flwr(self._meant(RUN))
        deadline = time.monotonic() + wait_seconds
        while not self.socket.exists():
            assert time.monotonic() < deadline, f"the relay does not listen: {said} {self.logs()}"
            time.sleep(0.2)

    def flwr(self, command: Sequence[str]) -> str:
        """A command of Flower's; asked again while the SuperLink is starting."""
        deadline = time.monotonic() + 60.0
        while True:
            found = subprocess.run(command, env=self._environment(), capture_output=True, text=True)
            said = found.stdout + found.stderr
            if found.returncode == 0:
                return said
            assert time.monotonic() < deadline, said
            time.sleep(1.0)

    def logs(self) -> str:
        texts = [f.read_text("utf-8", "replace")[-4000:] for f in self.folder.glob("*.log")]
        return "\n".join(texts)

    def _start_superlink(self) -> None:
        self._start("superlink", self._meant(SUPERLINK))

    def _start_supernode(self, party: str) -> None:
        own = ("--host", "127.0.0.1", "--port", str(free_port()))  # several run on this machine
        self._start(party, [*self._meant(SUPERNODE, party), *own])

    def _meant(self, line: str, party: str = "") -> list[str]:
        """The words of a documented line, with this deployment's files, names and port."""
        files = ("ca.pem", "server.pem", "server.key", "superlink.sqlite", "PARTY.pub", "relay-app")
        names = {name: str(self.folder / name).replace("PARTY", party) for name in files}
        names |= {"0.0.0.0": "127.0.0.1", "8000": str(self.port)}
        names |= {"flower.example.org:8000": f"127.0.0.1:{self.port}"}
        names |= {"node-key": str(self.folder / party)}
        program, *words = (names.get(word, word) for word in shlex.split(line))
        if party:
            socket = str(self._sockets[party])
            words = [w.replace("/run/hedgerow/PARTY.sock", socket) for w in words]
            words = [word.replace('"PARTY"', f'"{party}"') for word in words]
        return [str(self._programs / program), *words]

    def _start(self, name: str, command: Sequence[str]) -> None:
        log = self.folder / f"{name}.log"
        self._processes.append(start_process(command, log, self._environment()))

    def _environment(self) -> dict[str, str]:
        own = {
            "PATH": str(self._programs) + os.pathsep + os.environ["PATH"],
            "HEDGEROW_RELAY": str(self.folder / "hedgerow.toml"),
            "FLWR_HOME": str(self.folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
        }
        return {**os.environ, **own}


def write_certificates(folder: Path) -> None:
    """A certificate authority and a certificate for 127.0.0.1, for two days."""
    now = datetime.datetime.now(datetime.UTC)
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])

    def certificate(
        name: x509.Name, key: ec.EllipticCurvePublicKey, is_authority: bool
    ) -> x509.Certificate:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(is_authority, None), True)
            .add_extension(x509.SubjectAlternativeName(names), False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), False
            )
            .add_extension(
                x509.KeyUsage(
                    not is_authority,
                    False,
                    False,
                    False,
                    False,
                    is_authority,
                    is_authority,
                    False,
                    False,
                ),
                True,
            )
            .sign(authority, hashes.SHA256())
        )

    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(
        certificate(issuer, authority.public_key(), True).public_bytes(pem)
    )
    (folder / "server.pem").write_bytes(
        certificate(subject, server.public_key(), False).public_bytes(pem)
    )
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, _NO_PASSWORD)
    (folder / "server.key").write_bytes(key)


def write_node_key(file: Path) -> None:
    """A SuperNode's own key, made at its site; the public half beside it is registered."""
    key = ec.generate_private_key(ec.SECP384R1())
    pem, ssh = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
    file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.OpenSSH, _NO_PASSWORD))
    file.chmod(0o600)
    public = key.public_key().public_bytes(ssh, serialization.PublicFormat.OpenSSH)
    file.with_suffix(".pub").write_bytes(public + b"\n")
