"""Care of processes: how ours start and end, and what of the machine they leave to others.

Must not know what any of them is for: no file, no index, no model, no protocol.
"""
