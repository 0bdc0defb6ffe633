"""Which files there are, which changed, and what they say.

Must not know chunks, vectors or an index.
"""
