"""File formats of knowledge graphs, in and out."""
