"""One Dask cluster of four workers for all tests of this folder, reached by TLS with files.

It ends with the folder's last test: threads of a cluster draw from Python's global generator when
they reconnect, and Hypothesis takes that for a strategy of whichever test runs then.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from distributed import Client, LocalCluster
from distributed.security import Security

from hedgerow.engines.dask.cluster import Tls, connected
from tests.conftest import MIXED, Table, mixed_table

N_ROWS, N_FILES = 900, 6


@dataclass(frozen=True)
class Started:
    """A running cluster: where its scheduler is, and the files that it wants to see."""

    address: str
    tls: Tls


def write_key_and_certificate(folder: Path) -> Tls:
    """One key for every process of the cluster; its certificate is signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*plain))
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    file = str(folder / "cert.pem")
    return Tls(file, file, str(folder / "key.pem"))


@pytest.fixture(scope="package")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    tls = write_key_and_certificate(tmp_path_factory.mktemp("tls"))
    roles = ("scheduler", "worker", "client")
    files = {f"tls_{role}_{what}": path for role in roles
             for what, path in (("cert", tls.certificate), ("key", tls.key))}  # fmt: skip
    security = Security(tls_ca_file=tls.ca_file, require_encryption=True, **files)
    with LocalCluster(
        n_workers=4,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        security=security,
        protocol="tls://",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield Started(cluster.scheduler_address, tls)


@pytest.fixture(scope="package")
def client(started: Started) -> Iterator[Client]:
    with connected(started.address, started.tls) as made:
        yield made


@pytest.fixture(scope="package")
def table() -> Table:
    return mixed_table(N_ROWS, seed=11)


@pytest.fixture(scope="package")
def folder(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Parquet files with schema.toml; nobody changes it."""
    made = tmp_path_factory.mktemp("folder")
    MIXED.write(made / "schema.toml")
    write_files(made, table)
    return made


def write_files(folder: Path, table: Table, n_files: int = N_FILES) -> None:
    whole = pa.table(table)
    size = -(-whole.num_rows // n_files)
    for i in range(n_files):
        part = whole.slice(i * size, size)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=100)
