"""The folder in which notes lie: read, changed in whole steps, and kept in git.

The disk is the truth: what it says is what is answered, and git keeps its history.
"""
