"""Named objects in a folder or a bucket, which other machines can read.

Must not know: indexes, vectors, settings, tools.
"""
