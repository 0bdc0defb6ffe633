"""One embedding worker for all services of a user.

Must not know what is indexed, nor what a setting is: it hands frames on and looks after processes.
"""
