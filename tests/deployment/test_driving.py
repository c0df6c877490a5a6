"""What `open_federation` says where there is nothing to open; processes are in tests/e2e."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

from hedgerow import Ledger, Privacy, Schema, Unit, open_federation, plan_for, read_limits
from hedgerow.deployment import driving
from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.start import Start
from hedgerow.deployment.trial import pin_everywhere
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.engines.sockets import Unreachable
from hedgerow.errors import SchemaError, SettingsError
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.reservation import Reservation
from tests.test_documents import PAGES, blocks

SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1])


@pytest.fixture
def sites(tmp_path: Path) -> dict[str, Site]:
    names = (COORDINATOR, "a", "b", "c")
    return {name: Site.create(tmp_path / name, name) for name in names}


def test_a_folder_that_is_none_or_a_partys_is_refused(
    sites: dict[str, Site], tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=r"is no site folder.*hedgerow coordinator init"):
        open_federation(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="site folder of a, and this command needs a coord"):
        open_federation(sites["a"].path)
    with pytest.raises(SettingsError, match="no roster is pinned"):
        open_federation(sites[COORDINATOR].path, SCHEMA)


def test_the_schema_is_given_or_lies_in_the_site_folder(
    sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "CONNECT_SECONDS", 0.05)
    pin_everywhere(sites)
    place = sites[COORDINATOR].path
    with pytest.raises(SchemaError, match=r"which schema do the parties have\?.*nothing was spent"):
        open_federation(place)
    SCHEMA.write(place / "schema.toml")
    start = re.escape(f"hedgerow coordinator start {place}")
    for _ in range(2):  # the first one has let go of the site
        with pytest.raises(Unreachable, match=f"nothing carries messages.*{start}"):
            open_federation(place)
    with pytest.raises(Unreachable, match="Start the relay"):
        open_federation(place, SCHEMA, relay=place / "relay.sock")


def test_an_interrupted_fit_goes_on_with_the_ledger_that_pays_for_it(tmp_path: Path) -> None:
    plan = plan_for(SCHEMA, Privacy(1.0, 1e-6, "coordinator"), "dp-tr-newton", seed=1)
    file, names = tmp_path / "fit.toml", ["a", "b"]
    with closing(Ledger.open(tmp_path / "site.ledger")) as own, closing(Ledger.in_memory()) as new:
        about = {"format": 1, "parties": names, "ledger": str(own.path), "plan": plan.to_dict()}
        file.write_text(tomli_w.dumps(about))
        known = driving._read_fit(file, names, own)
        assert known is not None
        assert known.hash == plan.hash
        assert driving._read_fit(file, names, new) is None
        with closing(Ledger.open(tmp_path / "other.ledger")) as other:
            assert driving._read_fit(file, names, other) is None
        Reservation(new, plan, "coordinator").reserve()  # in memory, and yet the one that paid
        assert driving._read_fit(file, names, new) is not None
        assert driving._read_fit(file, ["a"], own) is None


def test_a_table_with_ids_and_every_column_answers_sums(tmp_path: Path) -> None:
    schema, data = tmp_path / "schema.toml", tmp_path / "rows.csv"
    SCHEMA.write(schema)
    start = Start().updated(data, schema, None, "patient")
    data.write_text("patient,age,dose,label\nx,1,0.5,0\ny,2,0.5,1\n")
    _, rows = start.read_table()
    assert (rows.columns, rows.ids) == (None, ("x", "y"))
    data.write_text("patient,age,dose\nx,1,0.5\ny,2,0.5\n")  # no labels
    assert start.read_table()[1].columns == (0, 1)
    data.write_text("patient,age,label\nx,1,0\ny,2,1\n")
    assert start.read_table()[1].columns == (0,)
    replace(SCHEMA, unit=Unit("person", "who", 2)).write(schema)
    data.write_text("patient,who,age,dose,label\nx,p,1,0.5,0\n")  # persons are in no share
    assert start.read_table()[1].columns == (0, 1)


def test_limits_are_read_as_documents_write_them(tmp_path: Path) -> None:
    found = {}
    for page in PAGES:
        for language, text, _ in blocks(page):
            if language == "toml" and "[epsilon]" in text:
                found[page.name] = text
    assert {"budget-over-a-year.md", "python-federation.md"} <= set(found)
    file = tmp_path / "limits.toml"
    for text in found.values():
        file.write_text(text)
        assert read_limits(file).budget is not None
    assert read_limits(file).delta == 1e-6
    for page in PAGES:
        for line in re.findall(r"^roles = .*$|(?<=`)roles = [^`]*", page.read_text(), re.MULTILINE):
            file.write_text(default_limits_text().replace("\n[epsilon]", f"\n{line}\n[epsilon]"))
            assert read_limits(file, "a").roles


def test_a_line_below_the_wrong_heading_is_told_to_move(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('format = 2\ndelta = 1e-6\n[epsilon]\ntotal = 4\nroles = ["simfl"]\n')
    with pytest.raises(SettingsError, match=r"roles stands below \[epsilon\].*above \[epsilon\]"):
        read_limits(file)
    file.write_text('format = 2\ndelta = 1e-6\n[[party]]\nname = "b"\n')
    assert read_limits(file).parties == (("b", ""),)
    assert read_limits(file, "a") == Limits(
        parties=(("a", ""), ("b", "")), delta=1e-6, roles=frozenset()
    )
