"""Stores what an index and its knowledge graph hold: one schema in a SQL database, locks, durable files, arrays."""
