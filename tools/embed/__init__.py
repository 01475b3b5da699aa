"""Embed."""
