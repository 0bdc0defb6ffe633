"""What the files of a project say, and what may be done to what they say.

    reading ── knowledge, sections ── parts, matter    documents and main instructions
    projects ── slugs                                  which project has which folder
    todos                                              lists and their tasks

Must not know git, nor who asks.
"""
