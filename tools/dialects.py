"""Rewrite the lists of operations in docs/dialects.md from the declarations of the dialects: `python tools/dialects.py`."""

from __future__ import annotations

import re
from pathlib import Path

from fuseflow.dialects import DIALECTS
from fuseflow.dialects.listing import markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dialects.md"


def renewed(page: str) -> str:
    """The page with lists as the declarations are now: what stands between `<!-- list of X -->` and `<!-- end -->`."""
    for dialect in DIALECTS:
        begin, end = f"<!-- list of {dialect} -->\n", "<!-- end -->"
        page, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{markdown(dialect)}\n{end}", page, flags=re.DOTALL)  # noqa: B023
        assert count == 1, f"docs/dialects.md has no list of {dialect}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
