"""A check of MLIR texts that runs before MLIR's parser sees them.

The parser ends the process, or takes minutes, on some texts that are no modules. This check refuses what no module of fuseflow has, and
gives its place: very deep brackets, very long words and formulas, and dialects that have no place in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from fuseflow.errors import FuseFlowError, Span, did_you_mean

MAX_NESTING = 100
"""The greatest depth to which brackets may be nested."""

MAX_WORD_LENGTH = 1000
"""The greatest number of characters that a number, a shape or a name may have."""

_TOKEN = re.compile(
    r"""(?P<skip>"(?:[^"\\\n]|\\.)*"|//[^\n]*|->)
      | (?P<open>[\[({<])
      | (?P<close>[\])}>])
      | (?P<word>\w{1001,})
      | (?P<operators>(?:(?:[-+*]|floordiv|ceildiv|mod)\s*+(?:\w++\s*+)?+){201,}+)
      | [\#!](?P<dialect>[A-Za-z_][\w$]*)(?=[.<])""",
    re.VERBOSE,
)


def screen_text(text: str, file: str, dialects: Collection[str] | None, error: type[FuseFlowError]) -> None:
    """Raise `error` for brackets that are nested too deep, for a word or a formula that is too long, and for types and attributes of a
    dialect that is none of `dialects`, unless that is None."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise error("the text has no UTF-8 form", span=Span(file, 1))
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += 1 if token["open"] else -1 if token["close"] else 0
        if depth > MAX_NESTING:
            raise error(f"brackets are nested more than {MAX_NESTING} deep", span=_span(text, file, token.start()))
        if token["word"] is not None:
            raise error(
                f"a number, a shape or a name has more than {MAX_WORD_LENGTH} characters", span=_span(text, file, token.start())
            )
        if token["operators"] is not None:
            raise error("a formula has more than 200 operators", span=_span(text, file, token.start()))
        name = token["dialect"]
        if dialects is not None and name is not None and name not in dialects:
            raise error(
                f"`{token[0]}` belongs to the dialect `{name}`, which has no place here",
                hint=did_you_mean(name, dialects),
                span=_span(text, file, token.start()),
            )


def _span(text: str, file: str, offset: int) -> Span:
    return Span(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
