"""Faults planted in what runs splits of indices. Random programs with splits must find each of them, and those without have none."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from program_faults import Plant, fault

from fuseflow.lower import reshape_views

SPLIT_FAULTS: dict[str, Plant] = {}


@fault("what is seen in parts begins one value late", SPLIT_FAULTS)
def late_views() -> AbstractContextManager[Any]:
    real = reshape_views.regroup_tensor

    def late(tensor: Any, *args: Any) -> Any:
        seen = real(tensor, *args)
        return replace(seen, values=np.roll(seen.values, 1, axis=0))

    return patch.object(reshape_views, "regroup_tensor", late)
