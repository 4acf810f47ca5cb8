"""Talking with a model that computes on its own GPU."""
