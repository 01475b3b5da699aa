"""Holds the programs that measure this package against others: speed and retrieval. They are not part of the
wheel.
"""
