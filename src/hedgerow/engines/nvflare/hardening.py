"""What a house of this federation lets NVFlare do: our two carriers and nothing else.

NVFlare's own defaults let a job bring code along, let administrators read files and send a party's
error log to the coordinator. Every house writes its own settings, the ones below, when it starts.
"""

from __future__ import annotations

import json
from typing import Any

_HERE = "hedgerow.engines.nvflare"
COORDINATOR_CARRIER = f"{_HERE}.carriers.CoordinatorCarrier"
PARTY_CARRIER = f"{_HERE}.carriers.PartyCarrier"
JOBS_FOLDER, SNAPSHOTS_FOLDER = "jobs", "snapshots"  # where the coordinator's NVFlare runs
AUX_TOPIC = "hedgerow"  # of the one message that the carriers exchange
ADMIN = "admin@hedgerow.local"  # NVFlare wants names of this form
ROLES = ("project_admin", "org_admin", "lead", "member")
HEARTBEAT_SECONDS = 30.0  # a party that is silent for so long counts as gone

# Between NVFlare's processes of one house too, a certificate is asked for.
CONNECTIONS = {
    "allow_adhoc_conns": False,
    "internal": {
        "scheme": "tcp",
        "resources": {"host": "localhost", "connection_security": "mtls"},
    },
}
LOGGING = {  # to the one file that hedgerow gives it
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "nvflare.fuel.utils.log_utils.BaseFormatter",
            "fmt": "%(asctime)s - %(name)s - %(levelname)s - %(fl_ctx)s - %(message)s",
        }
    },
    "handlers": {
        "output": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "stream": "ext://sys.stdout",
        }
    },
    "loggers": {"root": {"level": "INFO", "handlers": ["output"]}},
}

_WORKFLOW = {"id": "carrier", "path": COORDINATOR_CARRIER, "args": {}}
_EXECUTOR = {"tasks": ["none"], "executor": {"path": PARTY_CARRIER, "args": {}}}
JOB_FILES = {  # of the only job there is: which class runs where
    "config/config_fed_server.json": json.dumps(
        {"format_version": 2, "workflows": [_WORKFLOW], "components": []}
    ),
    "config/config_fed_client.json": json.dumps(
        {"format_version": 2, "executors": [_EXECUTOR], "components": []}
    ),
}

_PARTS = "nvflare.app_common"
_MANAGER = "resource_managers.passthrough_resource_manager"
_CONSUMER = "resource_consumers.passthrough_resource_consumer"
_SCHEDULER = "job_schedulers.job_scheduler"

_NOTHING = {
    "submit_job": "none",
    "clone_job": "none",
    "manage_job": "none",
    "download_job": "none",
    "view": "none",
    "operate": "none",
    "shell_commands": "none",
    "app_command": "none",
    "get_job_log": "none",
    "byoc": "none",
    "server-predeployed-flwr": "none",
}
# What the engine does: submit its job, end it, and see who is there.
_COORDINATOR_RIGHTS = {
    "submit_job": "any",
    "manage_job": "any",
    "view": "any",
    "sys_info": "any",
    "configure_job_log": "none",
    "show_errors": "none",
    "show_stats": "none",
}


def settings(role: str, name: str, federation: str, address: str) -> dict[str, dict[str, Any]]:
    """Every file of settings that NVFlare reads in the house of this name."""
    start = _party_start if role == "party" else _coordinator_start
    file, values = start(name, federation, address)
    return {
        f"startup/{file}": values,
        "local/resources.json": resources(role),
        "local/authorization.json": authorization(role),
        "local/comm_config.json": CONNECTIONS,
        "local/log_config.json": LOGGING,
    }


def _party_start(name: str, federation: str, address: str) -> tuple[str, dict[str, Any]]:
    coordinator = {
        "name": federation,
        "service": {"target": address, "scheme": "tcp"},
        "identity": address.rpartition(":")[0],
    }
    party = {
        "ssl_private_key": "client.key",
        "ssl_cert": "client.crt",
        "ssl_root_cert": "rootCA.pem",
        "fqsn": name,
        "is_leaf": True,
        "connection_security": "mtls",
    }
    return "fed_client.json", {"format_version": 2, "servers": [coordinator], "client": party}


def _coordinator_start(name: str, federation: str, address: str) -> tuple[str, dict[str, Any]]:
    host, _, port = address.rpartition(":")
    coordinator = {
        "name": federation,
        "service": {"target": address, "scheme": "tcp"},
        "admin_server": host,
        "admin_port": int(port),
        "ssl_private_key": "server.key",
        "ssl_cert": "server.crt",
        "ssl_root_cert": "rootCA.pem",
        "connection_security": "mtls",
    }
    return "fed_server.json", {"format_version": 2, "servers": [coordinator]}


def authorization(role: str) -> dict[str, Any]:
    """`local/authorization.json`: no code in jobs and no shell, for anyone, in any house."""
    rights = {**_NOTHING, **_COORDINATOR_RIGHTS}
    if role == "party":
        rights["sys_info"] = "none"
    permissions = dict.fromkeys(ROLES, _NOTHING) | {"project_admin": rights}
    return {"format_version": "1.0", "permissions": permissions}


def resources(role: str) -> dict[str, Any]:
    """`local/resources.json`: which classes may run, and our launcher."""
    return _party() if role == "party" else _coordinator()


def _common(carrier: str) -> dict[str, Any]:
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [carrier],
        "allow_log_streaming": False,
    }


def _party() -> dict[str, Any]:
    return {
        **_common(PARTY_CARRIER),
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            _component("resource_manager", f"{_PARTS}.{_MANAGER}.PassthroughResourceManager"),
            _component("resource_consumer", f"{_PARTS}.{_CONSUMER}.PassthroughResourceConsumer"),
            _component("process_launcher", f"{_HERE}.launcher.PartyLauncher"),
            _component("app_deployer", f"{_HERE}.launcher.JobDeployer"),
        ],
    }


def _coordinator() -> dict[str, Any]:
    persistor = f"{_PARTS}.state_persistors.storage_state_persistor.StorageStatePersistor"
    snapshots = {"uri_root": "/", "storage": {"path": f"{_HERE}.launcher.KitStorage", "args": {}}}
    jobs = "nvflare.apis.impl.job_def_manager.SimpleJobDefManager"
    return {
        **_common(COORDINATOR_CARRIER),
        "servers": [
            {
                "admin_storage": "transfer",
                "max_num_clients": 1000,
                "heart_beat_timeout": HEARTBEAT_SECONDS,
                "download_job_url": "",
                "admin_timeout": 10.0,
            }
        ],
        "snapshot_persistor": {"path": persistor, "args": snapshots},
        "components": [
            _component("job_scheduler", f"{_PARTS}.{_SCHEDULER}.DefaultJobScheduler", max_jobs=4),
            # Both relative to where `processes.py` starts NVFlare.
            _component("job_manager", jobs, uri_root=JOBS_FOLDER, job_store_id="job_store"),
            _component("job_store", f"{_PARTS}.storages.filesystem_storage.FilesystemStorage"),
            _component("process_launcher", f"{_HERE}.launcher.CoordinatorLauncher"),
        ],
    }


def _component(name: str, path: str, **args: Any) -> dict[str, Any]:
    return {"id": name, "path": path, "args": args}
