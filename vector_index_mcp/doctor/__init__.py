"""The checks of `doctor`, which find what is wrong on this machine and say what to do about it.

Must not change anything.
"""
