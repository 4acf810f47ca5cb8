"""Errors a user can meet, all with one readable message."""

from __future__ import annotations


class QgpuError(Exception):
    """Base of all errors about the user's input; `exit_code` is for command lines."""

    exit_code = 2


class ConfigError(QgpuError):
    """A machine configuration that cannot be built."""


class ProgramError(QgpuError):
    """A program image that the machine cannot hold or that is not legal."""


class AssemblyError(ProgramError):
    """Program text that does not assemble."""

    def __init__(self, message: str, filename: str, line: int) -> None:
        super().__init__(f"{filename}:{line}: error: {message}")
        self.line = line


class TokenError(QgpuError):
    """A token or record that the vocabulary does not hold."""


class OutputError(QgpuError):
    """An output folder that cannot be written."""


class ExecutionError(QgpuError):
    """A launch that did not reach its end record."""

    exit_code = 1


def os_error_text(error: OSError) -> str:
    """One line for what the system refused. Raises a closed pipe again: click ends quietly then."""
    if isinstance(error, BrokenPipeError):
        raise error
    return f"{error.filename or 'output'}: {error.strerror or error}"
