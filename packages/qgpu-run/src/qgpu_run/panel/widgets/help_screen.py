"""All keys and signs on one screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = """\
[b]Time[/b]
space       run or pause; a pause holds the model
right left  a token forwards, back
n b         to the next block, to the one before
+ -         faster, slower
home end    to the first token, to the newest
t           type a token's number

[b]Panes[/b]
1 to 6      choose a pane; tab goes to the next
up down page up, page down: scroll; f follows again
\\[ ]         another pass in the registers; f follows again
x           decimal or hexadecimal
a           all registers, or those the program names
g           go to an address: a, a\\[3], 0x40, s0x10 (shared)
m           the next array in memory
d           dark, light or the terminal's own colours
q           quit

[b]Signs[/b]
● runs the block  ○ waits  · has exited  ? one of both, no token says which
The number at the end of a token is its logit's distance from the next, in bf16 steps.
"""


class HelpScreen(ModalScreen[None]):
    """Covers the panel until a key is pressed."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 76; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; padding: 0 2; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter,space", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """The text."""
        with VerticalScroll() as scroll:
            scroll.border_title = "Keys"
            yield Static(HELP)
