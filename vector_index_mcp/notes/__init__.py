"""The tool set for what agents learn about projects: instructions, knowledge and to-dos, in git.

What the files of a store say, what may be done to them, and how an answer is worded. Must not know
who is connected and how, nor any other tool set. `store/` knows files and commits and nothing of
what stands in them; `merging/` knows texts and no files.
"""
