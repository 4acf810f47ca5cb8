"""Tables for documents and terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, columns padded to one width, with a final line break."""
    texts = [[str(cell).replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    lines = [f"| {_padded(row, widths, ' | ')} |" for row in texts]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def plain_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for a terminal: columns apart by two blanks, with a final line break."""
    texts = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    return "\n".join(_padded(row, widths, "  ").rstrip() for row in texts) + "\n"


def _padded(row: Sequence[str], widths: Sequence[int], separator: str) -> str:
    return separator.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
