"""Subcommands of qgpu-ptx, one per file."""
