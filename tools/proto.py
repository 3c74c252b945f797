"""Regenerate the protobuf module from its schema: `python tools/proto.py` (needs grpcio-tools, of the `test` extra)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "fuseflow/samml/tortilla.proto"


def generate() -> dict[str, str]:
    """Return the text of every generated file, by its path in the repository. The compiler is not loaded into this process: its library and
    that of OR-Tools do not go together."""
    with tempfile.TemporaryDirectory() as out:
        words = [f"-I{ROOT}", f"--python_out={out}", SCHEMA]
        if (status := subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words]).returncode) != 0:
            raise SystemExit(status)
        return {str(p.relative_to(out)): p.read_text(encoding="utf-8") for p in sorted(Path(out).rglob("*_pb2.py"))}


def main() -> None:
    for name, text in generate().items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
