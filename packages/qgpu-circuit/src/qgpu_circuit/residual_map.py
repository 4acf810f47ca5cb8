"""The fixed dimensions of the residual stream: all else may be the circuit's or the base's.

The stream is `base_hidden + EXTRA_DIMENSIONS` wide. In front are the base model's dimensions, which
the circuit uses too: its layers stand before the base's and add exactly nothing to text, and on GPU
tokens nothing that the base's layers do reaches a logit. What must be told apart on every token
has a dimension behind the base's:

- the anchor and the constants, 0 on text;
- three marks, set by the merge: `text_gate` mutes the circuit on text, `text_head` text tokens'
  logits on GPU tokens, `gpu_head` GPU tokens' logits on text;
- the code of the token, and, when all layers are done, that of the next. It stands where the
  embedding has it, so one matrix is both embedding and output head;
- everything else that the embedding says of a GPU token, since the base's layers may write into
  dimensions of their own, which the output head must not read.
"""

from __future__ import annotations

from dataclasses import dataclass

EXTRA_DIMENSIONS = 128
"""A multiple of 128 keeps the width one, as kernels for matrix products like it."""


@dataclass(frozen=True)
class ResidualMap:
    """Numbers of the fixed dimensions.

    Attributes:
        base_hidden: width of the base model.
    """

    base_hidden: int

    @property
    def anchor(self) -> int:
        """Holds the number that makes RMSNorm the identity on GPU tokens."""
        return self.base_hidden

    @property
    def one(self) -> int:
        """1 on GPU tokens."""
        return self.base_hidden + 1

    @property
    def second_one(self) -> int:
        """1 on GPU tokens, for constants of more bits than one bf16 weight holds."""
        return self.base_hidden + 2

    @property
    def text_gate(self) -> int:
        """The mark on text, 0 on GPU tokens."""
        return self.base_hidden + 3

    @property
    def text_head(self) -> int:
        """The mark on text; on GPU tokens 0, and -1 when the circuit is done."""
        return self.base_hidden + 4

    @property
    def gpu_head(self) -> int:
        """The negated mark on text; on GPU tokens 1, and 0 when the circuit is done."""
        return self.base_hidden + 5

    @property
    def code(self) -> int:
        """The first bit of the token's code, as a sign."""
        return self.base_hidden + 6

    def as_dict(self) -> dict[str, int]:
        """The dimensions by name, for manifests."""
        names = ("anchor", "one", "second_one", "text_gate", "text_head", "gpu_head", "code")
        return {name: getattr(self, name) for name in names}
