"""Pictures for the documents: python -m tests.deployment.console.pictures docs/images"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hedgerow.deployment.accounts import Accounts
from hedgerow.privacy.ledger.ledger import Ledger
from tests.deployment.console.browser import browser
from tests.deployment.console.rig import asked_plan, fill, make_site, served, wait_with

PLAN = asked_plan(
    "run-0006", 0.8, 5, purpose="Sepsis early warning, second stage",
    asker="Dr. Okafor, Trial Unit", ends="2099-03-31",
)  # fmt: skip


def main(folder: Path) -> None:
    """Made-up runs of a made-up hospital, light, dark and on a phone."""
    with tempfile.TemporaryDirectory() as place, browser() as seen:
        site = make_site(Path(place))
        with Ledger.open(site.ledger_path) as ledger:
            fill(site, ledger)
            wait_with(site, PLAN)
            with served(site, ledger=ledger) as rig:
                base = f"http://{rig.host}"
                seen.sign_in(base, Accounts(site).make_link("Paula Privacy"))
                for name, path, width, dark, most in (
                    ("budget", "/budget", 1100, False, 1180),
                    ("plan", f"/plans/{PLAN.hash}", 1100, True, 1300),
                    ("ledger_phone", "/ledger?kind=reserve", 390, False, 1500),
                ):
                    seen.open(base + path)
                    seen.picture(folder / f"console_{name}.png", width, dark, most)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
