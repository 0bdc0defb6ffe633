"""The tool set that searches datasets: prepared indexes of texts, read only, without their sources.

    tools ── service ─┬─ registry ── finding, manifest    which datasets there are, which are bad
                      └─ dataset ── rows                  searching one dataset
    conversion ─ process ─ converting ── flat, metadata   turns a foreign index into our table

Everything in a dataset is foreign input: it is checked before a library reads it, it is read in a
process of its own, and nothing in it is ever run. Must not know who is connected and how, nor any
other tool set.
"""
