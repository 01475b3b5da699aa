"""The offline extractor: facts read off the grammar of English."""
