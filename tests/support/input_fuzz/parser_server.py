"""A process that parses the MLIR texts of many inputs, and that another one replaces when a text ends it.

The product starts a new process for each text. A campaign would spend most of its time on that.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

REQUESTS = 500
"""How many requests a process answers before another one takes its place."""
SECONDS = 2
"""What one request may take of a processor."""
LENGTH = struct.Struct("<q")


def ask(request: bytes) -> tuple[int, bytes]:
    """Do what `canonical.ask` does."""
    return _answer(b"c" + request)


def parses_leniently(text: str) -> bool:
    """Return whether MLIR's parser accepts a text if every operation is known to it."""
    return _answer(b"l" + text.encode())[1] == b"yes"


def close() -> None:
    """End the process that answers this one, if there is one."""
    if (server := _servers.get(os.getpid())) is not None:
        _end(server)


_WORK: dict[bytes, Callable[[bytes], bytes]] = {
    b"c": lambda request: _canonical(request),
    b"l": lambda text: b"yes" if _is_module(text.decode()) else b"no",
}


def _canonical(request: bytes) -> bytes:
    from fuseflow.dialects.parser_process import answer

    return json.dumps(answer(json.loads(request))).encode()


def _is_module(text: str) -> bool:
    from torch_mlir import ir

    try:
        with _lenient_context():
            ir.Module.parse(text)
    except ir.MLIRError:
        return False
    return True


@cache
def _lenient_context() -> Any:
    """Return a context that every operation is known to. To make one takes longer than to parse most inputs."""
    from fuseflow.frontend.linalg.module_io import new_context

    with new_context() as context:
        context.allow_unregistered_dialects = True
    return context


@dataclass(slots=True)
class _Server:
    """A process that answers requests."""

    process: int
    requests: BinaryIO
    answers: BinaryIO
    answered: int = 0


_servers: dict[int, _Server] = {}
"""The server of each process that asks: a fork has none of its own."""


def _answer(request: bytes) -> tuple[int, bytes]:
    """Return the exit status of the server, which is 0 while it lives and negative for a signal, and its answer. A text that ends a used
    server is asked again in a new one, because an earlier text may have damaged the memory of that one."""
    server = _server()
    was_new = server.answered == 0
    ending = _try(server, request)
    return ending if ending[0] == 0 or was_new else _try(_server(), request)


def _server() -> _Server:
    server = _servers.get(os.getpid())
    if server is not None and server.answered >= REQUESTS:
        _end(server)
        server = None
    return server or _start()


def _start() -> _Server:
    read_requests, write_requests = os.pipe()
    read_answers, write_answers = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(write_requests)
            os.close(read_answers)
            _serve(os.fdopen(read_requests, "rb"), os.fdopen(write_answers, "wb"))
        finally:
            os._exit(1)
    os.close(read_requests)
    os.close(write_answers)
    server = _Server(process, os.fdopen(write_requests, "wb"), os.fdopen(read_answers, "rb"))
    _servers[os.getpid()] = server
    return server


def _end(server: _Server) -> int:
    """Close a server, wait for it, and return its exit status."""
    del _servers[os.getpid()]
    for stream in (server.requests, server.answers):
        with contextlib.suppress(BrokenPipeError):
            stream.close()
    return os.waitstatus_to_exitcode(os.waitpid(server.process, 0)[1])


def _try(server: _Server, request: bytes) -> tuple[int, bytes]:
    try:
        _write(server.requests, request)
        answer = _read(server.answers)
    except BrokenPipeError:
        answer = None
    if answer is None:
        return _end(server), b""
    server.answered += 1
    return 0, answer


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    faulthandler.disable()  # which would write where pytest keeps its standard error
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    while (request := _read(requests)) is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + SECONDS + 1, hard))
        _write(answers, _WORK[request[:1]](request[1:]))


def _write(stream: BinaryIO, message: bytes) -> None:
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


def _read(stream: BinaryIO) -> bytes | None:
    """Return the next message, or None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None
