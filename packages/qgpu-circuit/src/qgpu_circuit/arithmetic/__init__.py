"""Adders and multipliers over bits, for one lane."""
