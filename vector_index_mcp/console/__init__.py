"""The command line: its grammar, its commands, and what they print.

Must not know how files are indexed or ranked: a command asks a running service, or opens the
index itself while it runs.
"""
