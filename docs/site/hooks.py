"""Hooks of the site: files beside docs/ that pages link to come along, so links work everywhere.

Pages are written for GitHub, where `../ARCHITECTURE.md` is a link like any other. Such files get a
place under `repository/`; a link to a folder, or to a page that is not taken along, becomes text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md",
    "benchmarks/README.md",
)  # fmt: skip
ASIDE = "repository/"
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_FETCHED = re.compile(r'<(?:script|img|iframe|source)[^>]+src="https?:|<link[^>]+href="https?:')


def on_post_page(output: str, page: Any, config: Any) -> str:
    if fetched := _FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} fetches from a network: {fetched[0]}...")
    return output


def on_files(files: Files, config: Any) -> Files:
    for path in taken():
        place = ASIDE + path
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def taken() -> list[str]:
    """Files of the repository, beside docs/, that belong to the site."""
    examples = sorted((ROOT / "examples").glob("*/README.md"))
    pages = [*PAGES, *(str(path.relative_to(ROOT)) for path in examples)]
    documents = [*(ROOT / "docs").rglob("*.md"), *(ROOT / page for page in pages)]
    linked: set[str] = set()
    for document in documents:
        for _, _, target, _ in _LINK.findall(document.read_text(encoding="utf-8")):
            path = (document.parent / target).resolve()
            if path.is_file() and path.is_relative_to(ROOT) and path.suffix != ".md":
                linked.add(str(path.relative_to(ROOT)))
    return [*pages, *sorted(path for path in linked if not path.startswith("docs/"))]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    place = page.file.src_uri
    if place == "index.md":
        page.meta["hide"] = ["navigation"]
    known = {f.src_uri for f in files}

    def changed(link: re.Match[str]) -> str:
        mark, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        if not target or ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(place)), target))
        to = path.removeprefix("docs/") if path.startswith("docs/") else ASIDE + path
        if to in known:
            relative = posixpath.relpath(to, posixpath.dirname(place) or ".")
            return f"{mark}[{text}]({relative}{anchor})"
        # Inside docs/ a dead link is left for mkdocs to complain about.
        return link[0] if path.startswith("docs/") else text

    parts = _FENCE.split(markdown)
    return "".join(p if p.startswith("```") else _LINK.sub(changed, p) for p in parts)


def source_of(place: str) -> str:
    """Where a page of the site lies in the repository."""
    return place.removeprefix(ASIDE) if place.startswith(ASIDE) else "docs/" + place
