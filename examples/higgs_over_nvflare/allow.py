"""What the administrator of an NVFlare machine does once; docs/runtimes.md explains each line.

`python allow.py KIT SOCKET [PARTY]`: the kit of the server, or with the name of a party of a site.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    kit, socket, *party = sys.argv[1:]
    local = Path(kit) / "local"
    resources = json.loads((local / "resources.json.default").read_text("utf-8"))
    resources["class_allow_list"].append("hedgerow.engines.nvflare.")
    resources["allow_log_streaming"] = False
    # By default every deployment of a machine keeps its jobs in the same folder under /tmp.
    kept = json.dumps(resources, indent=2).replace(
        "/tmp/nvflare", str(Path(kit).resolve() / "kept")
    )
    (local / "resources.json").write_text(kept, "utf-8")
    lines = ["format = 1", f"socket = {json.dumps(socket)}"]
    lines += [f"party = {json.dumps(name)}" for name in party]
    (local / "hedgerow.toml").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
