"""Extracts facts by rules of English grammar, for the offline mode."""
