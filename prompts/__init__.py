"""One text file a prompt."""
