"""Write every block of every page."""

from tests.record.blocks import ROOT, written
from tests.record.pages import PAGES

for page, blocks in PAGES.items():
    path = ROOT / page
    path.write_text(written(path.read_text(encoding="utf-8"), blocks()), encoding="utf-8")
