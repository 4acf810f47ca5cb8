"""The stand-in: a small model of Qwen3.5's architecture that comes with the package.

It turns questions into GPU calls and reads the results, so that chat and evaluation work where no
Qwen3.5 can be downloaded. `train.py` makes it from generated dialogues.
"""
