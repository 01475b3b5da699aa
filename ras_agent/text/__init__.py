"""Analyses text in English and Unicode: words, names, sentences, dates and numbers, canonical keys."""
