"""A qgpu circuit merged with a Qwen3.5 checkpoint."""
