"""Answers a question from a live index, and compares the answer with the disk."""
