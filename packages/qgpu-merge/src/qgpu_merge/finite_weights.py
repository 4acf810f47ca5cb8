"""Weights of a base, and that they are finite: a circuit cannot stay apart from a NaN.

A number that is not finite, in whatever layer, makes all logits NaN, those of GPU tokens too.
"""

from __future__ import annotations

import torch

from qgpu_merge.errors import MergeError
from qgpu_merge.read_checkpoint import Checkpoint


def finite(
    tensor: torch.Tensor, where: str, *, first_row: int = 0, below: float | None = None
) -> torch.Tensor:
    """The tensor, once it is sure that all its elements are finite, and not beyond a bound.

    Args:
        tensor: of floating point numbers.
        where: folder and tensor, for the message.
        first_row: number of its first row in the whole tensor.
        below: what all elements have to stay below in magnitude; the dtype's range by default.

    Raises:
        MergeError: names the first element that is not.
    """
    bound = float(torch.finfo(tensor.dtype).max) if below is None else below
    if tensor.numel() == 0:
        return tensor
    low, high = (float(end) for end in torch.aminmax(tensor))
    if -bound <= low and high <= bound:
        return tensor
    at = (~(tensor.double().abs() <= bound)).nonzero()[0].tolist()
    value = float(tensor[tuple(at)])
    place = [at[0] + first_row, *at[1:]] if at else at
    wanted = "must be finite" if below is None else f"must be finite, and at most {below:.3g} large"
    raise MergeError(
        f"{where} holds {value:g} at {place}: weights of a base {wanted}; "
        "take an undamaged copy of the model"
    )


def finite_tensor(base: Checkpoint, name: str, below: float | None = None) -> torch.Tensor:
    """A tensor of a base by its name without prefix.

    Raises:
        MergeError: see `finite`.
    """
    return finite(base.tensor(name), f"{base.folder}: {base.stored_name(name)}", below=below)


def finite_rows(
    base: Checkpoint, name: str, first: int, last: int, below: float | None = None
) -> torch.Tensor:
    """Rows of a matrix of a base.

    Raises:
        MergeError: see `finite`.
    """
    where = f"{base.folder}: {base.stored_name(name)}"
    return finite(base.rows(name, first, last), where, first_row=first, below=below)
