"""The command line: its grammar, who answers a command, and what a person sees of it.

Must not know how files are indexed or ranked: it asks a service, or opens one for a moment.
"""
