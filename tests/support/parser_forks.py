"""MLIR texts of tests are read in forks of one process, which has loaded MLIR once.

The product starts a process for each text (`fuseflow/dialects/sandboxed_parser.py`), most of whose time is that of loading MLIR. A fork
runs the same `main` within the same limits. This file is also the script of the process, so that it loads nothing but Python's own modules.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import subprocess
import sys
from importlib import import_module
from typing import Any

LIBRARIES = ("_mlir", "_mlirDialectsIRDL", "_torchMlir")
"""What the product's process loads of torch-mlir."""
_servers: dict[int, subprocess.Popen[bytes]] = {}
"""The server of each process that asks: a fork has none of its own."""


def fork_parsers() -> None:
    """Let every text be read in a fork. The product's own function is `sandboxed_parser.ask.__wrapped__` then."""
    from fuseflow.dialects import parser_process, sandboxed_parser

    script = parser_process.__file__

    @functools.wraps(sandboxed_parser.ask)
    def ask(request: bytes) -> tuple[int, bytes]:
        server = _servers.get(os.getpid())
        if server is None:
            command = [sys.executable, "-I", "-S", __file__, script, sandboxed_parser._packages()]
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            _servers[os.getpid()] = server
        assert server.stdin is not None and server.stdout is not None
        send(server.stdin, request)
        status, output = receive(server.stdout), receive(server.stdout)
        assert status is not None and output is not None, "the process that reads MLIR texts has ended"
        return int(status), output

    sandboxed_parser.ask = ask


def send(stream: Any, message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "little") + message)
    stream.flush()


def receive(stream: Any) -> bytes | None:
    """Return the next message, or None at the end."""
    head = stream.read(8)
    return stream.read(int.from_bytes(head, "little")) if len(head) == 8 else None


def serve(script: str, packages: str) -> None:
    """Answer each request on standard input with the exit status of a fork and what it printed."""
    spec = importlib.util.spec_from_file_location("parser_process", script)
    assert spec is not None and spec.loader is not None
    parser = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(parser)
    sys.path.append(packages)
    for library in LIBRARIES:
        import_module(f"torch_mlir._mlir_libs.{library}")
    while (request := receive(sys.stdin.buffer)) is not None:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            answer(parser, request, write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            output = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        send(sys.stdout.buffer, str(status).encode())
        send(sys.stdout.buffer, output)


def answer(parser: Any, request: bytes, write_end: int) -> None:
    """Be the product's process, which reads the request from standard input and prints the answer."""
    try:
        sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(request)), os.fdopen(write_end, "w")
        parser.main()
        sys.stdout.flush()
    except BaseException:
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve(*sys.argv[1:])
