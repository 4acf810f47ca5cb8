"""The subcommands of `qgpu-merge`."""
