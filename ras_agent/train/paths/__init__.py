"""Trains the path encoder, which scores facts and paths; the exact command is at the head of `train`."""
