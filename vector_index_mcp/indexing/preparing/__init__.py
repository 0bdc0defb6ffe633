"""Prepares files for the index in child processes, which a parser may crash or hang.

Must not know: the index, what is stored in it already, and what happens to the results.
"""
