"""`hedgerow methods`: the names that --method takes."""

from __future__ import annotations

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, table


def methods(json: options.Json = False) -> None:
    """List the methods, what they do and the settings they start from."""
    from hedgerow.presets import AUTO, METHODS

    if json:
        listed = [
            {
                "name": method.name,
                "summary": method.summary,
                "auto": method.name == AUTO,
                "settings": {
                    name: value
                    for name, value in method.settings({}).to_dict().items()
                    if name in method.uses
                },
            }
            for method in METHODS.values()
        ]
        print_json(listed)
        return
    shown = table("Methods", "name", "what it does", "settings")
    for method in METHODS.values():
        name = f"{method.name} (auto)" if method.name == AUTO else method.name
        values = method.settings({}).to_dict()
        listing = ", ".join(f"{k}={values[k]}" for k in values if k in method.uses)
        shown.add_row(name, method.summary, listing)
    results().print(shown)
