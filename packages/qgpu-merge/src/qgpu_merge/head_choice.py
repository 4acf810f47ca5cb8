"""What becomes of a head that is the base's embedding. Imports nothing: a command line needs it."""

from __future__ import annotations

from enum import Enum


class HeadChoice(Enum):
    """Whether it stays so, or gets a matrix of its own; `AUTO`: what costs text less."""

    AUTO = "auto"
    TIED = "tied"
    OWN = "own"
