"""Subcommands of `qgpu-run`, one file each."""
