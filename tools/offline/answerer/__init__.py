"""Answers without a language model: finds answer spans, compares things and judges yes or no, by a small network."""
