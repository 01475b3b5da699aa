"""Training of a GraphLLM that answers questions about graphs, and the papers' tables (G-Retriever, Align-GRAG)."""
