"""Training of the path encoder."""
