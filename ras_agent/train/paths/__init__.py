"""Trains the path encoder, which scores facts and paths. The docstring of `train` has the command."""
