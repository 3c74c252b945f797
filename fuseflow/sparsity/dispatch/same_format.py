"""The sparsifier that keeps what another tensor stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SameFormatSparsifier:
    """Keeps the entries that stand where `ref_sp_ten` has its own, and stores them as it does. It is what updates in place and gradients
    of stored tensors have. A storage class of the user without known places needs a registered implementation of it."""

    ref_sp_ten: Any
