"""Foundation: documents, chunks, and the index on disk."""
