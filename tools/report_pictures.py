"""Makes the pictures of one run's page in docs/how-to/report-a-run.md: its first screen, and a region in the light and in the dark.

    python tools/report_pictures.py [--into docs]

It needs Chromium and Playwright. The GCN runs with its first layer fused, as the commands of docs/how-to/report-a-run.md do it.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import browser, when  # noqa: E402

SIZE = {"width": 1440, "height": 960}
COLOURS = 256


@click.command(help=__doc__.partition("\n")[0])
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), default=ROOT / "docs", help="Where they are written.")
def main(into: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = _page(Path(folder))
        for scheme in ("light", "dark"):
            shown = chromium.new_page(viewport=SIZE, color_scheme=scheme)
            shown.goto(page.as_uri())
            if scheme == "light":
                _save(shown, into / "report.png")
            _open_region(shown)
            _save(shown, into / ("report-region.png" if scheme == "light" else "report-dark.png"))
            shown.close()


def _page(folder: Path) -> Path:
    """Run the model, and return the page of the run."""
    words = ["run", "models/gcn.py", "--fuse", "layer1", "--explain", "-o", str(folder / "gcn"), "-q"]
    for command in (words, ["report", str(folder / "gcn"), "-q"]):
        subprocess.run([sys.executable, "-m", "fuseflow", *command], cwd=ROOT, check=True)
    return folder / "gcn" / "report.html"


def _open_region(shown: Any) -> None:
    """Open the first layer with two clicks: on its bar, and on the node that limits it."""
    shown.click(".time-bar a:has-text('layer1')")
    shown.locator("section:not([hidden]) p a").first.click()
    when(shown.locator("section:not([hidden]) .node.chosen")).to_have_count(1)
    shown.mouse.move(0, 0)  # what is below the mouse has another colour


def _save(shown: Any, file: Path) -> None:
    """Write what is shown with few colours, which a page has."""
    shown.wait_for_timeout(500)
    Image.open(io.BytesIO(shown.screenshot())).convert("RGB").quantize(COLOURS).save(file, optimize=True)
    click.echo(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
