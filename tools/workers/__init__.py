"""Spreads work over processes and machines, and stores what they share on disk."""
