"""The TextMate grammar of .ein files: every token of the shipped programs has a scope, and the right one. The witness is a port of the
tokenizer of VS Code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fuseflow.einsum.parse import parse
from fuseflow.einsum.tokens import TokenReader, is_number
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.tensors.dtypes import DTYPES
from fuseflow.tensors.format import SHORT_NAMES

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
GRAMMAR = EXTENSION / "syntaxes" / "ein.tmLanguage.json"
FILES = subprocess.run(["git", "ls-files", "*.ein"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    base = pytest.importorskip("textmate_grammar.parsers.base")
    return base.LanguageParser(json.loads(GRAMMAR.read_text(encoding="utf-8")))


def scopes(tokenizer: Any, text: str) -> dict[tuple[int, int], str]:
    """The innermost scope of each character of a text, by its line and column from 0."""
    return {
        (line, column + k): names[-1]
        for (line, column), token, names in tokenizer.parse_string(text).flatten()
        for k in range(len(token))
    }


def expected(kind: str) -> str:
    return {"number": "constant.numeric", "path": "entity.name.tag", "symbol": ("keyword.operator", "punctuation")}.get(kind, "")  # type: ignore[return-value]


@pytest.mark.parametrize("file", FILES)
def test_every_token_of_the_shipped_programs_has_its_scope(tokenizer: Any, file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = scopes(tokenizer, text)
    for number, raw in enumerate(text.splitlines()):
        code, hash_mark, comment = raw.partition("#")
        for token in TokenReader(code, file, number + 1).tokens[:-1]:
            names = {found.get((number, token.start + k), "source.ein") for k in range(len(token.text))}
            assert len(names) == 1 and "source.ein" not in names, (file, number + 1, token)
            kind = "number" if is_number(token) else token.kind
            assert names.pop().startswith(expected(kind)), (file, number + 1, token)
        if hash_mark:
            assert found[number, len(code)].startswith("comment") and found[number, len(raw) - 1].startswith("comment"), comment


def test_words_have_the_scope_of_what_they_mean(tokenizer: Any) -> None:
    def scope(line: str, word: str) -> str:
        return scopes(tokenizer, line)[0, line.rindex(word)]

    for name in REDUCERS:
        assert scope(f"y[i] = {name}(j) A[i, j]", f"{name}(").startswith("keyword.control.reduction")
    for name, row in OPERATORS.items():
        if not row.symbol:
            assert scope(f"y[i] = {name}(A[i], 0)", f"{name}(").startswith("support.function"), name
    for name in DTYPES:
        assert scope(f"tensor A[4] dense {name}", name).startswith("storage.type"), name
    for name in (*SHORT_NAMES, "bsr4x4", "compressed", "singleton", "bitmap"):
        assert scope(f"tensor A[4, 4] {name}", name).startswith("storage.modifier"), name
    kept = "H[i, j] = keep(2 of 4 greatest over j) A[i, j]"
    parse(f"tensor A[4, 4] csr\n{kept}\noutput H")
    assert scope(kept, "keep").startswith("keyword.control") and scope(kept, "over").startswith("keyword.other")
    assert scope("tensor A[4, 4] csr all", "all").startswith("keyword.other")
    assert scope("of[i] = A[i]", "of").startswith("entity.name.type")  # a tensor of that name


def test_the_extension_names_files_that_there_are() -> None:
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))["contributes"]
    (grammar,), (language,) = package["grammars"], package["languages"]
    assert (EXTENSION / grammar["path"]).resolve() == GRAMMAR and (EXTENSION / language["configuration"]).is_file()
    assert grammar["scopeName"] == json.loads(GRAMMAR.read_text(encoding="utf-8"))["scopeName"] and language["extensions"] == [
        ".ein"
    ]
