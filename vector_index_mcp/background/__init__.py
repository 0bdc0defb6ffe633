"""Runs one background service for each tool set and place, for any number of front ends.

Must not know: what is served. It carries bytes and manages processes.
"""
