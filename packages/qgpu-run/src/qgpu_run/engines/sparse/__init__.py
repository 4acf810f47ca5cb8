"""The sparse engine: the checkpoint's own arithmetic on the weights that GPU tokens can reach."""
