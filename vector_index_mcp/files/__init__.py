"""Finds which files there are, which of them changed, and reads their text.

Must not know chunks, vectors or an index.
"""
