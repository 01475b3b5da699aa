"""Calls of chat models: limits, retries, deadlines, a cache of replies, and dialogues made of calls."""
