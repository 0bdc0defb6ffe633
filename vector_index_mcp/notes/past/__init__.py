"""What projects were, what has changed since, and the way back.

`moments` are the times that people name, `history` the commits of a piece, `states` a store as it
was or is, `pieces` what of a project is meant, `comparing` two states by `differences`, `restoring`
one of them.
"""
