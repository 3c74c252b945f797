"""Arrays of scipy among other values. Loading scipy takes longer than a small run, so it is loaded where one of its arrays is made."""

from __future__ import annotations

import sys
from typing import Any


def is_scipy(value: Any) -> bool:
    """Return whether a value is a sparse array or matrix of scipy. There is none before something loads scipy."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(value))
