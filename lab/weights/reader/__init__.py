"""Training of the span reader."""
