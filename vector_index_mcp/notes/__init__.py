"""The tool set for what agents learn about projects: instructions, knowledge and to-dos, in git.

This room parses the files of a store, changes them and words the answers. Must not know who is
connected and how, nor any other tool set. `store/` handles files and commits, but not what the
files contain; `merging/` handles texts, but no files.
"""
