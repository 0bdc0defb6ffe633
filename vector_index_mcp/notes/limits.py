"""Limits on what is stored, read and shown. Pure."""

LARGEST_FILE_BYTES = 32_000_000
"""The largest file that is read and kept in the history; the contract allows texts of 10 MB."""
MOST_SHOWN = 20
"""The most names in a list for people and agents."""
