"""The tool set for one software project: decides what is searched and words the answers.

Must not know: who is connected and how, and other tool sets.
"""
