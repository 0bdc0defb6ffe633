"""The tool set for knowledge that others have built: read only, without its sources.

    tools ── service ─┬─ registry ── finding, manifest    which datasets there are, which are bad
                      └─ dataset ── rows                  what they say about a question
    conversion ─ process ─ converting ── flat, metadata   a foreign index as one of our tables

Everything in a dataset is foreign input: it is checked before a library touches it, it is read in a
process of its own, and nothing of it is ever run. Must not know who is connected and how, nor any
other tool set.
"""
