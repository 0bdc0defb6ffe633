"""The tool set for one software project: what is searched there, and how an answer is worded.

Must not know who is connected and how, nor any other tool set.
"""
