"""Reads and writes knowledge graphs in the formats of other programs."""
