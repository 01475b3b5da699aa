"""Holds what all parts share: records and their JSON, events, errors, marks, and the schema of relations."""
