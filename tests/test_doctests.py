"""The examples in docstrings print what they show. Modules without one are not even loaded for it."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def with_examples(folder: Path, top: Path) -> Iterator[str]:
    """The names of the modules of a folder that have examples. `top` is the folder of the path of imports."""
    for path in sorted(folder.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")


MODULES = [*with_examples(ROOT / "fuseflow", ROOT), *with_examples(ROOT / "tests" / "support", ROOT / "tests" / "support")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    outcome = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0 and outcome.failed == 0
