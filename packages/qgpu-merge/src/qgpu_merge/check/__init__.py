"""Measures that a merged checkpoint treats text as the original does."""
