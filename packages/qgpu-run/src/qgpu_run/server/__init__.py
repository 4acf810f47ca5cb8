"""Talking with a server that has an OpenAI-compatible interface."""
