"""Scores facts and paths: by words, by vectors, by a cross-encoder, or by a chat model."""
