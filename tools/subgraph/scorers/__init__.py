"""Scorers of facts and paths: by words, by meaning, by a cross-encoder, by a chat model."""
