"""Foundation: the knowledge graph of a corpus, built from the facts its passages state."""
