"""Trains the GFM network (GFM-RAG, arXiv:2502.01113): write the sets (examples), train, export.

The docstrings of these three modules have the commands.
"""
