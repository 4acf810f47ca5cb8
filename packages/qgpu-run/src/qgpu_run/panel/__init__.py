"""The panel: what the GPU is doing, as its tokens and the recurrent state tell it."""
