"""Embeds texts: the packaged MiniLM, sentence-transformers, servers, LangChain embeddings."""
