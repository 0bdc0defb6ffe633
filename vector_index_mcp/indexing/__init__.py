"""Folders kept indexed: what changes in them is found in the index soon after.

Must not know who asks and how (protocols, tools, the command line), what is worth searching for,
or how an answer is worded.
"""
