"""`hedgerow tree`: one readable tree as text, rules, picture or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, show, tell
from hedgerow.errors import SettingsError

Svg = Annotated[Path | None, typer.Option("--svg", help="Write the picture here (SVG).")]
Text = Annotated[bool, typer.Option("--text", help="Show the tree as indented text (default).")]
Rules = Annotated[bool, typer.Option("--rules", help="Show every leaf as a plain sentence.")]


def tree(
    model: options.ModelFile,
    svg: Svg = None,
    text: Text = False,
    rules: Rules = False,
    json: options.Json = False,
) -> None:
    """Show a model of method private-tree: splits, noisy counts with intervals, class shares."""
    from hedgerow.cli.files import write_text
    from hedgerow.inspection.tree_view import TreeView, export_rules, export_text, plot_tree
    from hedgerow.model.ensemble import Ensemble

    if json and (text or rules):
        raise SettingsError("--json shows all of the tree; leave out --text and --rules")
    view = TreeView.of(Ensemble.load(model))
    if svg is not None:
        write_text(svg, plot_tree(view).svg)
        tell(f"Picture written to {svg}.")
    if json:
        print_json({**view.to_dict(), "rules": export_rules(view)})
    elif rules:
        show("\n".join([*export_rules(view), "", view.note]))
    elif text or svg is None:
        show(export_text(view))
