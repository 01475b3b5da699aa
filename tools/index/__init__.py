"""Turns files into passages, and stores and searches passages: load, chunk, ingest, store."""
