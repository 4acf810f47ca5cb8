"""The machine that a check runs on: its device, its memory, and what libraries print."""

from __future__ import annotations

import resource
import sys
from typing import Any

import torch

from qgpu_merge.errors import CheckError


def open_device(name: str) -> torch.device:
    """A usable device, with fp32 computed as fp32.

    Raises:
        CheckError: torch has no such device here.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise CheckError(f"cannot use device '{name}': {reason}; try --device cpu") from None
    # Convolutions would round fp32 inputs to 10 bits otherwise.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return device


def peak_bytes() -> int:
    """Most memory that this process has held, mapped pages of files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak if sys.platform == "darwin" else peak * 1024


def device_peak_bytes(device: torch.device) -> int | None:
    """Most memory that torch has held on a CUDA device; None for other devices."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else None


def quiet_transformers() -> None:
    """Keeps progress bars and notes about optional kernels off stderr."""
    from transformers.utils import logging

    quiet: Any = logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
