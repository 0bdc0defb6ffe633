"""Parses the files of a project, and computes their new contents after a change.

    reading ── knowledge, sections ── parts, matter    documents and main instructions
    projects ── slugs                                  which project has which folder
    todos                                              to-do lists and their tasks

Must not know git, nor the caller.
"""
