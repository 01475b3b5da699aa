"""Builds, stores, searches and exports the knowledge graph of a corpus, made from the facts its passages state."""
