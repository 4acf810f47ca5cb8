"""CUDA compilers behind one protocol."""
