"""The folder that holds the notes: it is read, changed in atomic steps, and versioned with git.

The files on disk are authoritative: answers come from them. git only keeps their history.
"""
