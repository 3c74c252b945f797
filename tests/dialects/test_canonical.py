"""Texts of modules are read in a process that may end: what it prints, what it refuses, and what is told when it breaks off."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fuseflow.dialects import canonical
from fuseflow.dialects.canonical import InvalidModuleError, canonical_text
from fuseflow.errors import FrontendError, GraphError
from fuseflow.frontend import read_mlir
from fuseflow.samml import mlir

HOSTILE = Path(__file__).parents[1] / "data" / "hostile" / "mlir"
PLUS = "func.func @f(%a: f32) -> f32 {\n  %b = arith.addf %a, %a : f32\n  return %b : f32\n}\n"


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
    monkeypatch.setattr(canonical, "ask", lambda request: (status, b""))
    with pytest.raises(FrontendError) as caught:
        read_mlir(PLUS, "m.mlir")
    assert str(caught.value).startswith("m.mlir:1: error[frontend]: m.mlir is not a valid MLIR module\n")
    assert caught.value.notes == (message,)
    with pytest.raises(GraphError, match=f"^g.mlir:1: .*{message}"):
        mlir.from_mlir("module {}", "g.mlir")


def test_an_operation_before_the_block_that_it_belongs_to() -> None:
    """MLIR's parser refuses the text, and damages its memory on the way: a process that reads it again and again ends with SIGABRT."""
    with pytest.raises(FrontendError) as caught:
        read_mlir((HOSTILE / "operation_before_its_block").read_text(), "m.mlir")
    assert caught.value.notes == ("redefinition of block '^bb0'",)
    assert str(caught.value.span) == "m.mlir:95:5"


def test_a_text_that_grows_without_end_when_it_is_printed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name stands for two of the one before. MLIR keeps each once, and prints the last as 2^40 values."""
    monkeypatch.setattr(canonical, "SECONDS", 1)
    values = "\n".join(f"#a{n + 1} = [#a{n}, #a{n}]" for n in range(40))
    text = f"#a0 = [1, 2]\n{values}\nmodule attributes {{x = #a40}} {{}}\n"
    with pytest.raises(InvalidModuleError, match=r"MLIR takes more than 1 s|MLIR breaks off"):
        canonical_text(text)
