"""Makes the pictures of docs/how-to/report-a-run.md: the first screen, a region in light and in dark, two runs, a sweep and a point.

    python tools/report_pictures.py [--into docs]

It needs Chromium and Playwright. The commands are those of docs/how-to/report-a-run.md.
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
        page, compared, sweep = _pages(Path(folder))
        for scheme in ("light", "dark"):
            shown = chromium.new_page(viewport=SIZE, color_scheme=scheme)
            shown.goto(page.as_uri())
            if scheme == "light":
                _save(shown, into / "report.png")
            _open_region(shown)
            _save(shown, into / ("report-region.png" if scheme == "light" else "report-dark.png"))
            shown.close()
        shown = chromium.new_page(viewport=SIZE, color_scheme="light")
        for name, file in (("comparison", compared), ("sweep", sweep)):
            shown.goto(file.as_uri())
            _save(shown, into / f"report-{name}.png")
        shown.locator("#overview tbody a").first.click()
        when(shown.locator("section:not([hidden]) a.run").first).to_be_visible()
        _save(shown, into / "report-point.png")


def _pages(folder: Path) -> tuple[Path, Path, Path]:
    """Run the models, and return the pages of a run, of two runs, and of a sweep."""
    run, unfused, compared, swept = folder / "gcn", folder / "unfused", folder / "compared.html", folder / "sweep.html"
    sweep = ["docs/example/sweep.yaml", "--store", folder / "sweep.sqlite"]
    for words in (
        ["run", "models/gcn.py", "--fuse", "layer1", "--explain", "-o", run],
        ["run", "models/gcn.py", "--fuse", "none", "-o", unfused],
        ["report", run],
        ["report", unfused, run, "-o", compared],
        ["sweep", *sweep],
        ["report", *sweep, "-o", swept],
    ):
        subprocess.run([sys.executable, "-m", "fuseflow", *map(str, words), "-q"], cwd=ROOT, check=True)
    return run / "report.html", compared, swept


def _open_region(shown: Any) -> None:
    """Open the first layer with two clicks: on its bar, and on the node that limits it."""
    shown.click(".time-bar a:has-text('layer1')")
    shown.locator("section:not([hidden]) p.limit a").click()
    when(shown.locator("section:not([hidden]) .node.chosen")).to_have_count(1)
    shown.mouse.move(0, 0)  # what is below the mouse has another colour


def _save(shown: Any, file: Path) -> None:
    """Write what is shown with few colours, which a page has."""
    shown.wait_for_timeout(500)
    Image.open(io.BytesIO(shown.screenshot())).convert("RGB").quantize(COLOURS).save(file, optimize=True)
    click.echo(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
