"""How long `hedgerow vertical train` will take with paillier: told before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.cli.parties import OtherSites, TablesHere
from hedgerow.cli.screen import print_json, tell
from hedgerow.cli.vertical_parties import SharesHere
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.methods.fedxgboost.estimate import PaillierEstimate
    from hedgerow.methods.fedxgboost.settings import VerticalSettings


def time_of(
    schema: Schema, settings: VerticalSettings, parties: TablesHere | OtherSites, wanted: bool
) -> PaillierEstimate | None:
    """By the tables of this machine; where they are at other sites, for 100,000 rows."""
    if settings.protection != "paillier":
        if wanted:
            raise SettingsError(
                f"--estimate is about paillier, and the protection is {settings.protection}, which "
                "takes seconds to minutes. Leave it out."
            )
        return None
    from hedgerow.methods.fedxgboost.estimate import estimate

    return estimate(schema, settings, parties.least_rows if isinstance(parties, SharesHere) else 0)


def show_time(time: PaillierEstimate | None, json: bool) -> None:
    if time is None:
        return
    if json:
        print_json(time.to_dict())
    else:
        tell(time.words())
