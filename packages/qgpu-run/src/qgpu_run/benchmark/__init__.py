"""`qgpu-run bench`: every number that says how good the GPU is, measured in one run."""
