"""Trains the GFM network (GFM-RAG, arXiv:2502.01113) and G-reasoner's: examples and reasoner_sets write the sets.

The docstrings of train and reasoner have the commands.
"""
