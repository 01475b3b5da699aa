"""Holds what a run needs: roles and how they are called, limits, checkpoints, reviews, and the trace."""
