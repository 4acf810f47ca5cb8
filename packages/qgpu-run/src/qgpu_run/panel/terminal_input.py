"""What Textual's reading of a terminal lacks."""

from __future__ import annotations

import codecs
from typing import Any


def mend_terminal_input() -> None:
    """Has apps take bytes that are no UTF-8, and Alt+Enter as most terminals send it.

    Bytes that are no text end an app otherwise: a paste of a binary file, a key of a terminal with
    another encoding. Alt+Enter comes as Escape and Enter, and is read as Enter; it is Ctrl+J then.
    """
    from textual import _ansi_sequences
    from textual.drivers import linux_driver
    from textual.keys import Keys

    driver: Any = linux_driver
    driver.getincrementaldecoder = _decoder_that_replaces
    sequences: Any = _ansi_sequences.ANSI_SEQUENCES_KEYS
    sequences["\x1b\r"] = (Keys.ControlJ,)


def _decoder_that_replaces(encoding: str) -> Any:
    decoder = codecs.getincrementaldecoder(encoding)
    return lambda: decoder("replace")
