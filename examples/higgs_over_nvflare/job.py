"""Submit the relay to an NVFlare deployment, as its lead: `python job.py KIT`.

NVFlare's own example constructs XGBHorizontalRecipe here, with rounds and parameters. This recipe
has none: what is trained, and what it may cost, is between the coordinator and the parties.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nvflare.recipe import ProdEnv

from hedgerow.engines.nvflare import HedgerowRecipe


def main() -> None:
    kit = Path(sys.argv[1])
    recipe = HedgerowRecipe(name="higgs", min_clients=3)
    env = ProdEnv(startup_kit_location=str(kit), username=kit.name, login_timeout=30.0)
    run = recipe.execute(env)
    print("job", run.get_job_id())


if __name__ == "__main__":
    main()
