"""A notice of inputs with values that are not finite: NaN, and values that are infinite or too large for their type."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from fuseflow.tensors import Tensor

MOST_NAMED = 4


def not_finite_notice(tensors: Mapping[str, Tensor], constants: Collection[str] = ()) -> str:
    """Return a text that counts the values that are not finite in each input, or '' if there are none. Inputs in `constants` may
    have them, as an attention mask does."""
    counts: dict[str, str] = {}
    for name, tensor in tensors.items():
        if name in constants or tensor.values.dtype.kind != "f" or np.isfinite(tensor.values).all():
            continue
        not_a_number = int(np.isnan(tensor.values).sum())
        infinite = int(np.isinf(tensor.values).sum())
        parts = [f"{count:,} {kind}" for count, kind in ((not_a_number, "NaN"), (infinite, "infinite")) if count]
        counts[name] = f"{' and '.join(parts)} in `{name}`"
    if not counts:
        return ""
    more = f" and some in {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"inputs have values that are no finite numbers: {', '.join(list(counts.values())[:MOST_NAMED])}{more}"
