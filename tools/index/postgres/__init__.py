"""Holds passages, their terms and their vectors in a PostgreSQL database, searched there."""

from ras_agent.tools.index.postgres.index import POSTGRES_RETRIEVERS, PostgresIndex

__all__ = ["POSTGRES_RETRIEVERS", "PostgresIndex"]
