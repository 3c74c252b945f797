"""A snapshot of a run that stands still, to which the run returns after a trial with deeper FIFOs. Records refer to each other by
address, so contents are copied back into the arrays in which they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.sim.engine.network_layout import NetworkLayout


class Snapshot:
    """All that a run may change of a layout: the contents of arrays, and which arrays there are, since rings and tables grow. The data of
    tensors are not part of it."""

    def __init__(self, layout: NetworkLayout) -> None:
        lists: list[list[Any]] = [layout.rings, layout.scratches, layout.histories]
        unwritten = {id(layout.scratches[k]) for k in np.flatnonzero(layout.streams["limited"] == 0).tolist()}
        arrays = [layout.nodes, layout.streams, layout.readers, layout.agenda, *layout.arrays.values()]
        arrays += [part.state for part in layout.parts]
        if layout.controller is not None:
            lists += layout.controller.memory.lists()
            arrays += layout.controller.memory.arrays()
        self.tables = [(vars(table), dict(vars(table))) for tables in layout.tables.values() for table in tables]
        self.lists = [(items, list(items)) for items in lists]
        arrays += [item for _, items in self.lists for item in items if id(item) not in unwritten]
        arrays += [field for _, fields in self.tables for field in fields.values() if isinstance(field, np.ndarray)]
        self.arrays: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = [(array, array.copy()) for array in arrays]

    def restore(self) -> None:
        """Return to the state of the snapshot."""
        for table, fields in self.tables:
            table.update(fields)
        for items, before in self.lists:
            items[:] = before
        for array, content in self.arrays:
            array[...] = content
