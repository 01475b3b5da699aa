"""Distributes work over processes and machines, with caches that they share."""
