"""Splits IR text into tokens and walks over them."""

import json
import re
from dataclasses import dataclass

from cuvil_core.errors import ModelError

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n]+)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<value>%[A-Za-z0-9_]+)
    | (?P<digest>sha256:[0-9a-f]{64}|hex:[0-9a-f]*)
    | (?P<float>-?(?:\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf\b|nan\b))
    | (?P<extents>\d+(?:x\d+)+)
    | (?P<number>\d+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>\.\.|//|==|<=|[-+*(){}\[\]<>,=:@])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text with its kind and line (from 1)."""

    kind: str
    text: str
    line: int


class Cursor:
    """A place in the tokens; every `take` moves on or raises a ModelError with the line."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0

    @property
    def next(self) -> Token:
        """The token at the place, of kind `end` after the last."""
        return self._tokens[self._at] if self._at < len(self._tokens) else Token("end", "", self._last_line())

    def peek(self, text: str) -> bool:
        """True where the next token reads `text`."""
        return self.next.text == text and self.next.kind != "string"

    def take(self, kind: str) -> str:
        """The next token's text, which must be of the kind."""
        token = self.next
        if token.kind != kind:
            raise self.error(f"a {kind} is expected")
        self._at += 1
        return token.text

    def skip(self, text: str) -> bool:
        """Move over `text` if it is next."""
        found = self.peek(text)
        self._at += found
        return found

    def expect(self, text: str) -> None:
        """Move over `text`, which must be next."""
        if not self.skip(text):
            raise self.error(f"{text!r} is expected")

    def string(self) -> str:
        """The content of a quoted string."""
        try:
            return str(json.loads(self.take("string")))
        except ValueError as error:
            raise self.error("a well-formed string is expected") from error

    def integer(self) -> int:
        """A number with an optional minus."""
        sign = -1 if self.skip("-") else 1
        return sign * int(self.take("number"))

    def error(self, expected: str) -> ModelError:
        """The error that says where the text stops making sense."""
        found = self.next.text or "the end"
        return ModelError(
            f"IR text line {self.next.line}: {expected}, found {found!r}; see docs/ir.md for the grammar."
        )

    def _last_line(self) -> int:
        return self._tokens[-1].line if self._tokens else 1


def tokens(text: str) -> list[Token]:
    """All tokens but white space; ModelError for a character that begins none."""
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ModelError(f"IR text line {line}: {text[at]!r} begins no token; see docs/ir.md for the grammar.")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    return found
