"""Launches CUDA kernels on a merged qgpu model."""
