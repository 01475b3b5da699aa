"""Stores the content of an index and its knowledge graph: one schema in a SQL database, locks, durable files, arrays."""
