"""Scorers of facts and paths: by words, by vectors, by a cross-encoder, by a chat model."""
