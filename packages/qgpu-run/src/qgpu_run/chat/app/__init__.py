"""The chat: a terminal in which a model answers and its GPU is seen at work."""
