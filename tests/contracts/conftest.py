"""The model server that all gateways stand before."""

from tests.contracts.test_gateways import engine

__all__ = ["engine"]
