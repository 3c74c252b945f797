"""Regenerate the protobuf modules from their schema: `python tools/proto.py` (needs grpcio-tools, of the `test` extra)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "fuseflow/samml/tortilla.proto"


def generate() -> dict[str, str]:
    """The text of every generated file, by its path in the repository."""
    with tempfile.TemporaryDirectory() as out:
        status = protoc.main(["protoc", f"-I{ROOT}", f"--python_out={out}", f"--pyi_out={out}", SCHEMA])
        if status != 0:
            raise SystemExit(status)
        found = {str(p.relative_to(out)): p.read_text(encoding="utf-8") for p in sorted(Path(out).rglob("*_pb2.py*"))}
    # The generator leaves out type arguments, which mypy's strict mode asks for.
    return {name: '# mypy: disable-error-code="type-arg"\n' * name.endswith(".pyi") + text for name, text in found.items()}


def main() -> None:
    for name, text in generate().items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
