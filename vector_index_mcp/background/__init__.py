"""One service per tool set and place, and many front ends.

Must not know what is served: it carries bytes and looks after processes.
"""
