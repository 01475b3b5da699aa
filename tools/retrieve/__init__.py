"""Stage: find passages."""
