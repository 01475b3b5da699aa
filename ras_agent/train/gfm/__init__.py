"""Trains the GFM network (GFM-RAG, arXiv:2502.01113) in three modules: examples (writes the sets), train,
export.

Their docstrings have the commands.
"""
