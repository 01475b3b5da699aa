"""What a run needs while it lasts: roles and how they are called, limits, checkpoints, reviews, and the trace."""
