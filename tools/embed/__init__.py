"""Sentence vectors: the packaged MiniLM, sentence-transformers, LangChain embeddings."""
