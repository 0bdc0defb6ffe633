"""The tool set for what agents learn about projects: instructions, knowledge and to-dos, in git.

See ARCHITECTURE.md for the way of a query and of a change.
"""
