"""Shares one embedding worker among all services of a user.

Must not know: what is indexed, and settings. It passes frames on and manages worker processes.
"""
