"""Calls of chat models: limits, retries, deadlines, a cache of replies."""
