"""Measures the project: speed, retrieval tables, path instances. These programs are not part of the wheel."""
