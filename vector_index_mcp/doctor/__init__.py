"""Whether everything is as the program needs it, and what to do where it is not.

Must not change anything.
"""
