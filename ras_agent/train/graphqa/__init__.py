"""Trains a GraphLLM that answers questions about graphs, and makes the papers' tables (G-Retriever, Align-GRAG)."""
