"""Keeps folders indexed, so that a search finds a change soon after it was saved.

Must not know: who asks and how (protocols, tools, the command line), what is worth searching for,
and how an answer is worded.
"""
