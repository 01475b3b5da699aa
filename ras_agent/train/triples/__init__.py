"""Trains models that turn text into triples, seq2seq and causal."""
