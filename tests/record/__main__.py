"""Write every block of every page, and every drawing."""

from tests.record.blocks import ROOT, written
from tests.record.pages import PAGES, PICTURES, pictures

for page, blocks in PAGES.items():
    path = ROOT / page
    path.write_text(written(path.read_text(encoding="utf-8"), blocks()), encoding="utf-8")

PICTURES.mkdir(parents=True, exist_ok=True)
for name, text in pictures().items():
    (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
