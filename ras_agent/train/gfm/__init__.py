"""Trains the GFM network (GFM-RAG, arXiv:2502.01113): write the sets (examples), train, export.

The exact commands are at the head of these three modules.
"""
