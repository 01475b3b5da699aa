"""Training of the GFM network (GFM-RAG, arXiv:2502.01113)."""
