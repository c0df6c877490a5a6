"""`hedgerow methods`: the names that --method takes, and every setting with its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from hedgerow.cli import options
from hedgerow.cli.given import flag_of
from hedgerow.cli.screen import print_json, results, table
from hedgerow.privacy.settings import DEFAULTS, MEANINGS, Privacy, meanings, settings_table


def methods(json: options.Json = False) -> None:
    """List the methods and every setting: default, meaning, and how to give it."""
    from hedgerow.methods.registry import METHODS

    promise = {field.name: field.default for field in fields(Privacy)}
    settings = [_setting("privacy", *entry, meanings(Privacy)) for entry in promise.items()]
    settings += [_setting("method", *entry, MEANINGS) for entry in DEFAULTS.items()]
    if json:
        listed = [
            {
                "name": method.name,
                "summary": method.summary,
                "queries": dict(
                    zip(("candidates", "splits", "weights"), method.queries, strict=True)
                ),
                "rounds": method.rounds,
                "trust": method.trust,
                "settings": {
                    name: value
                    for name, value in settings_table(method.settings({})).items()
                    if name in method.uses
                },
            }
            for method in METHODS.values()
        ]
        print_json({"methods": listed, "settings": settings})
        return
    shown = table("Methods", "name", "what it does", "queries", "rounds", "own defaults")
    for method in METHODS.values():
        defaults = ", ".join(f"{k}={v}" for k, v in method.defaults.items())
        asked = " + ".join(part for part in method.queries if part != "0")
        shown.add_row(method.name, method.summary, asked, method.rounds, defaults or "those below")
    console = results()
    console.print(shown)
    what = ("setting", "default", "meaning", "option")
    console.print(_listing("Privacy settings", what, settings, "privacy"))
    console.print(_listing("Settings of the methods", what, settings, "method"))


def _setting(kind: str, name: str, default: Any, words: Mapping[str, str]) -> dict[str, Any]:
    if name == "trust":  # the default depends on how many parties there are
        default = "parties, or coordinator for one table"
    return {
        "name": name,
        "kind": kind,
        "default": None if default is MISSING else default,
        "meaning": words[name],
        "option": flag_of(name),
    }


def _listing(title: str, what: tuple[str, ...], settings: list[dict[str, Any]], kind: str) -> Any:
    shown = table(title, *what)
    for entry in settings:
        if entry["kind"] == kind:
            default = "none; must be given" if entry["default"] is None else str(entry["default"])
            how = entry["option"] + ("=VALUE" if entry["option"].startswith("--set") else " VALUE")
            shown.add_row(entry["name"], default, entry["meaning"], how)
    return shown
