"""The sparsifier that keeps what another tensor stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SameFormatSparsifier:
    """Keeps the entries at the places of the entries of `ref_sp_ten`, and stores them in its format. Updates in place and
    gradients of stored tensors use it. A storage class of the user without known places needs a registered implementation of
    it."""

    ref_sp_ten: Any
