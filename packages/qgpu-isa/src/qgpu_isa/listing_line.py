"""One line of a listing as a cursor over its words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qgpu_isa.errors import AssemblyError
from qgpu_isa.machine_config import WORD_BITS, WORD_MASK
from qgpu_isa.suggestions import did_you_mean

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|->|\.?[A-Za-z_]\w*|-?\d\w*|[,:?!=@#]|\S', re.ASCII)


class ListingLine:
    """A cursor over the words of a line.

    Attributes:
        comment: the text behind `;`, without surrounding blanks.
    """

    def __init__(self, content: str, filename: str, number: int) -> None:
        self.filename = filename
        self.number = number
        self.comment = ""
        self._words: list[str] = []
        self._at = 0
        for match in _WORD.finditer(content):
            if match[0] == ";":
                self.comment = content[match.end() :].strip()
                break
            self._words.append(match[0])

    def error(self, message: str) -> AssemblyError:
        """An error at this line, to be raised."""
        return AssemblyError(message, self.filename, self.number)

    def unexpected(self, expected: str, known: Iterable[str] = ()) -> AssemblyError:
        """An error that the next word is not what is expected, to be raised."""
        word = self.peek()
        found = "the line ends" if word is None else f"found '{word}'"
        return self.error(f"expected {expected}, {found}{did_you_mean(word or '', known)}")

    def at_end(self) -> bool:
        return self._at == len(self._words)

    def end(self) -> None:
        """Checks that nothing is left."""
        if not self.at_end():
            raise self.unexpected("the end of the line")

    def peek(self) -> str | None:
        """The next word, which stays."""
        return None if self.at_end() else self._words[self._at]

    def take(self, expected: str = "a word") -> str:
        """The next word, whatever it is."""
        word = self.peek()
        if word is None:
            raise self.unexpected(expected)
        self._at += 1
        return word

    def accept(self, word: str) -> bool:
        """Takes the next word if it is `word`."""
        found = self.peek() == word
        self._at += found
        return found

    def expect(self, word: str) -> None:
        """Takes the next word, which must be `word`."""
        if not self.accept(word):
            raise self.unexpected(f"'{word}'")

    def numbered(self, *letters: str) -> tuple[str, int] | None:
        """Takes a word such as `r12` that begins with one of the letters."""
        match = re.fullmatch(r"([a-z])(0|[1-9]\d*)", self.peek() or "", re.ASCII)
        if match is None or match[1] not in letters:
            return None
        self._at += 1
        return match[1], int(match[2])

    def integer(self, expected: str) -> int:
        """Takes a number in decimal, `0x`, `0o` or `0b` form."""
        try:
            value = int(self.peek() or "", 0)
        except ValueError:
            raise self.unexpected(expected) from None
        self._at += 1
        return value

    def immediate(self) -> int:
        """Takes a 32-bit number, signed or unsigned, as a word."""
        value = self.integer("a number behind '#'")
        if not -(1 << (WORD_BITS - 1)) <= value <= WORD_MASK:
            raise self.error(f"immediate {value} does not fit {WORD_BITS} bits")
        return value & WORD_MASK
