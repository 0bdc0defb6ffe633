"""Files to what the index stores of them, in child processes that a parser may crash or hang.

Must not know the index: what is already stored, and what happens to what was prepared.
"""
