"""Trains text-to-triples models, seq2seq and causal."""
