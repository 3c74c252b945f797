"""What a text must be before MLIR's parser sees it. The parser ends the process where lists are nested without end and where some
attributes of other dialects are malformed, and takes minutes for a number or a shape of a hundred thousand digits. So all three are refused
here, with their place."""

from __future__ import annotations

import re
from collections.abc import Collection

from fuseflow.errors import FuseFlowError, Span, did_you_mean

DEEPEST = 100
"""How deep brackets may be nested."""

LONGEST = 1000
"""How many characters a number, a shape or a name may have."""

_TOKEN = re.compile(
    r"""(?P<skip>"(?:[^"\\\n]|\\.)*"|//[^\n]*|->)
      | (?P<open>[\[({<])
      | (?P<close>[\])}>])
      | (?P<word>\w{1001,})
      | [\#!](?P<dialect>[A-Za-z_][\w$]*)(?=[.<])""",
    re.VERBOSE,
)


def screen(text: str, file: str, dialects: Collection[str], error: type[FuseFlowError]) -> None:
    """Refuse brackets that are nested too deep, and types and attributes of a dialect that is none of `dialects`."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise error("the text has no UTF-8 form", span=Span(file, 1))
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += 1 if token["open"] else -1 if token["close"] else 0
        if depth > DEEPEST:
            raise error(f"brackets are nested more than {DEEPEST} deep", span=_span(text, file, token.start()))
        if token["word"] is not None:
            raise error(f"a number, a shape or a name has more than {LONGEST} characters", span=_span(text, file, token.start()))
        name = token["dialect"]
        if name is not None and name not in dialects:
            raise error(
                f"`{token[0]}` belongs to the dialect `{name}`, which has no place here",
                hint=did_you_mean(name, dialects),
                span=_span(text, file, token.start()),
            )


def _span(text: str, file: str, at: int) -> Span:
    return Span(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
