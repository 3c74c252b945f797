"""A cache of synthesized cells, by the text of the part: no module is synthesized twice.

The files are private: a file that others could write is not read, and a damaged file is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuseflow.errors import FileError
from fuseflow.filesystem import parse_json
from fuseflow.hardware.area.liberty import Liberty
from fuseflow.hardware.area.parts import Part
from fuseflow.hardware.area.synthesis import GATES, OPTIMIZE, STEPS, Cells
from fuseflow.hardware.tools import library_text
from fuseflow.private_store import cache_root, private_directory, read_private, write_private
from fuseflow.resources.gates import SQUARE_MICROMETRES

FOLDER = "area"


@dataclass(frozen=True, slots=True)
class KeptCells:
    """The cached cells of parts, from one version of yosys for one library, or for generic gates (`made_by`). `directory` is None
    where no directory can be trusted, and then nothing is cached."""

    directory: Path | None
    made_by: str

    @classmethod
    def of(cls, version: str, liberty: Liberty | None) -> KeptCells:
        library = "" if liberty is None else hashlib.sha256(liberty.text.encode()).hexdigest()
        return cls(private_directory(cache_root() / FOLDER), f"{version}\n{STEPS}\n{GATES}\n{OPTIMIZE}\n{library}")

    def read(self, part: Part) -> Cells | None:
        """Return the cached cells of a part, or None if there are none."""
        if self.directory is None:
            return None
        content = read_private(self._path(part))
        if content is None:
            return None
        return readable_cells(content)

    def write(self, part: Part, cells: Cells) -> None:
        """Write the cells of a part to the cache, if that is possible."""
        if self.directory is not None:
            with suppress(OSError):
                write_private(self._path(part), json.dumps(cells.to_json(), sort_keys=True).encode())

    def _path(self, part: Part) -> Path:
        assert self.directory is not None
        texts = [self.made_by, part.kind, part.module, repr(part.parameters), part.body]
        texts += [text for file in part.files for text in (file, library_text(file))]
        return self.directory / f"{hashlib.sha256(json.dumps(texts).encode()).hexdigest()}.json"


def readable_cells(content: bytes) -> Cells | None:
    """Return the cells in the content of a cache file, or None if it is damaged or has generic gates without a known area."""
    try:
        cells = _cells(parse_json(content, "what was kept"))
    except (FileError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    is_generic = cells.area is None
    return None if is_generic and not cells.counts.keys() <= SQUARE_MICROMETRES.keys() else cells


def _cells(values: Mapping[str, Any]) -> Cells:
    counts = {str(name): int(count) for name, count in values["counts"].items()}
    area = values["area"]
    return Cells(counts, None if area is None else float(area))
