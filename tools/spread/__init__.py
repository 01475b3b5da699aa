"""Work spread over processes and machines, and what they share on disk."""
