"""The checks of `doctor`: what is wrong on this machine, and what to do about it.

Must not change anything.
"""
