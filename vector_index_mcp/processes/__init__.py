"""Starts and ends child processes, limits what they take, and runs what may hang in threads.

Must not know what any process is for: no file, no index, no model, no protocol.
"""
