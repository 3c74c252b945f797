"""The tokens of a line of a program text, and a reader of them that says where a mistake is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from fuseflow.errors import ProgramError, Span

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<path>@\S*)
      | (?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.]))
      | (?P<name>\w+(\.\w+)*)
      | (?P<symbol>==|!=|<=|>=|[-+*/<>=()\[\],:])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a line: its text, its kind (`number`, `name`, `path`, `symbol` or `end`), and its offset in the line."""

    kind: str
    text: str
    start: int


def is_number(token: Token) -> bool:
    return token.kind == "number" or token.text in ("inf", "nan")


_MOST_DIGITS = 18
"""A size or a number of entries is below 10^18, so that it fits into 64 bits."""


class TokenReader:
    """The tokens of one line, and the position of the next one. Raises `ProgramError` at the token that is not as expected."""

    def __init__(self, text: str, file: str, number: int) -> None:
        self.text, self.file, self.number = text, file, number
        self.tokens = self.tokenize()
        self.at = 0

    def tokenize(self) -> list[Token]:
        tokens: list[Token] = []
        offset = 0
        while offset < len(self.text):
            match = _TOKEN.match(self.text, offset)
            if match is None:
                self.fail(f"unexpected character `{self.text[offset]}`", Token("symbol", self.text[offset], offset))
            kind = str(match.lastgroup)
            if kind != "space":
                tokens.append(Token(kind, match[0], offset))
            offset = match.end()
        return [*tokens, Token("end", "", len(self.text.rstrip()))]

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one, and return whether it was."""
        if self.peek().text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str, where: str) -> None:
        if not self.accept(text):
            self.fail(f"expected `{text}` {where}, found {self.show_next()}")

    def expect_name(self, description: str) -> str:
        if self.peek().kind != "name":
            self.fail(f"expected {description}, found {self.show_next()}")
        return self.take().text

    def expect_integer(self, description: str) -> int:
        if not self.peek().text.isdecimal():
            self.fail(f"expected {description}, found {self.show_next()}")
        if len(self.peek().text) > _MOST_DIGITS:
            self.fail(f"{description} has more than {_MOST_DIGITS} digits")
        return int(self.take().text)

    def finish(self) -> None:
        if self.peek().kind != "end":
            self.fail(f"unexpected {self.show_next()}")

    def show_next(self) -> str:
        return f"`{self.peek().text}`" if self.peek().kind != "end" else "the end of the line"

    def span(self, token: Token | None = None) -> Span:
        return Span(self.file, self.number, (token or self.peek()).start + 1)

    def fail(self, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        raise ProgramError(message, hint=hint, span=Span(self.file, self.number, token.start + 1) if token else self.span())
