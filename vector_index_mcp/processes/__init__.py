"""Starts and ends child processes, and limits how much of the machine they take.

Must not know what any process is for: no file, no index, no model, no protocol.
"""
