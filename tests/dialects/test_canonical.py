"""Texts of modules are read in a process that may end: what it prints, what it refuses, and what is told when it breaks off."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fuseflow.dialects import parser_process, sandboxed_parser
from fuseflow.dialects.sandboxed_parser import InvalidModuleError, canonical_text
from fuseflow.errors import FrontendError, GraphError
from fuseflow.frontend import read_mlir
from fuseflow.samml import mlir

PLUS = "func.func @f(%a: f32) -> f32 {\n  %b = arith.addf %a, %a : f32\n  return %b : f32\n}\n"


@pytest.fixture(autouse=True)
def _new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, each text has a process of its own, as it has for users. Other tests share one, which `parser_forks` forks."""
    monkeypatch.setattr(sandboxed_parser, "ask", sandboxed_parser.ask.__wrapped__)  # type: ignore[attr-defined]


def test_a_module_keeps_its_places_and_is_printed_the_same_again() -> None:
    text = canonical_text(PLUS)
    assert 'loc("-":2:8)' in text
    assert canonical_text(text) == text


def test_passes_run_in_the_other_process() -> None:
    assert "arith.addf" not in canonical_text(PLUS.replace("return %b", "return %a"), passes="builtin.module(canonicalize)")


def test_what_the_parser_says_has_its_place() -> None:
    with pytest.raises(InvalidModuleError) as caught:
        canonical_text(PLUS.replace("addf", "addi"))
    assert caught.value.diagnostics[0].location == 'loc("-":2:8)'


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (-signal.SIGSEGV, "MLIR breaks off on this text, with signal SIGSEGV"),
        (-signal.SIGABRT, "MLIR breaks off on this text, with signal SIGABRT"),
        (-signal.SIGXCPU, "MLIR takes more than 2 s for this text"),
        (1, "MLIR breaks off on this text, with status 1"),
    ],
)
def test_a_parser_that_ends_is_one_message_with_the_file(monkeypatch: pytest.MonkeyPatch, status: int, message: str) -> None:
    monkeypatch.setattr(sandboxed_parser, "ask", lambda request: (status, b""))
    with pytest.raises(FrontendError) as caught:
        read_mlir(PLUS, "m.mlir")
    assert str(caught.value).startswith("m.mlir:1: error[frontend]: m.mlir is not a valid MLIR module\n")
    assert caught.value.notes == (message,)
    with pytest.raises(GraphError, match=f"^g.mlir:1: .*{message}"):
        mlir.from_mlir("module {}", "g.mlir")


PLANTED = """
import os, runpy
names = runpy.run_path({script!r})
names["main"].__globals__["answer"] = lambda request: {does}
names["main"]()
"""


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("[0 for _ in iter(int, 1)]", "MLIR takes more than 1 s for this text"),
        ("os.kill(os.getpid(), 11)", "MLIR breaks off on this text, with signal SIGSEGV"),
        ("{'text': ' ' * (8 << 30)}", "MLIR breaks off on this text, with status 1"),
    ],
)
def test_a_process_that_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str, message: str) -> None:
    """The process with its real limits, and something planted where it would parse."""
    (tmp_path / "planted.py").write_text(PLANTED.format(script=parser_process.__file__, does=does))
    monkeypatch.setattr(parser_process, "__file__", str(tmp_path / "planted.py"))
    monkeypatch.setattr(sandboxed_parser, "SECONDS", 1)
    with pytest.raises(InvalidModuleError, match=message):
        canonical_text(PLUS)
