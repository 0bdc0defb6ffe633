"""Named objects in a folder or a bucket, where other machines find them.

Must not know: indexes, vectors, settings, tools.
"""
