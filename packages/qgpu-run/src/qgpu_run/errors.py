"""Errors of a launch, each with one readable message and an exit status."""

from __future__ import annotations

from qgpu_isa.errors import ExecutionError, QgpuError


class ModelError(QgpuError):
    """A checkpoint that is not a merged qgpu model, or that is damaged."""


class RequestError(QgpuError):
    """A kernel file, argument or option that makes no launch."""


class TokenLimitError(ExecutionError):
    """The model wrote more tokens than it was allowed to."""


class KernelFaultError(ExecutionError):
    """The kernel accessed memory it may not access, or trapped."""


class ForeignTokenError(ExecutionError):
    """The model wrote a token that is not one of the machine's."""
