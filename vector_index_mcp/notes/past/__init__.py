"""The history of projects: earlier states, what has changed since, and restoring them.

`moments` parses the times that people write, and `pieces` the part of a project that they name.
`history` finds commits, `states` reads a store as it was or is, `comparing` compares two states,
whose `differences` are shown, and `restoring` brings one back.
"""
