"""A finished run as a few bytes: the content of its page, without the values of its tensors. A store can keep many of them."""

from __future__ import annotations

import json
import zlib
from typing import Any

from fuseflow.errors import FileError
from fuseflow.filesystem import parse_json
from fuseflow.run.artifacts import program_values, region_values
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.samml import text as samml_text

SCHEMA = 1
_FREE_BYTES = 16 << 20
_MOST_RATIO = 100
"""The most bytes of an unpacked run, as a multiple of its packed bytes; `_FREE_BYTES` are always allowed. Runs that fuseflow
packs have ten times as many bytes."""


def pack_run(compiled: Compiled, result: Result) -> bytes:
    """Return a run as bytes. They are the same for the same run: the seconds that it took are left out."""
    values = {
        "schema": SCHEMA,
        "result": {key: value for key, value in result.to_dict().items() if key != "seconds"},
        "program": program_values(compiled.program),
        "regions": [
            {"values": region_values(compiled.program, region), "graph": samml_text.show(region.graph)}
            for region in compiled.regions
        ],
    }
    return zlib.compress(json.dumps(values, separators=(",", ":"), allow_nan=False).encode(), 6)


def unpack_run(packed: bytes) -> dict[str, Any]:
    """Return the values of a packed run: `result` as in `result.json`, `program` as in `program.json`, and `regions`, each with the
    `values` of its `region.json` and the text of its `graph`. Raises `FileError` for bytes that are no packed run."""
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(packed, max(_FREE_BYTES, _MOST_RATIO * len(packed)))
    except zlib.error as error:
        raise FileError(f"a run that was kept is damaged: {error}") from None
    if not inflater.eof:
        raise FileError("a run that was kept is not whole, or larger than what is read")
    values = parse_json(text, "a run that was kept")
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise FileError(f"a run that was kept is not of schema {SCHEMA}, which this version of fuseflow reads")
    return values
