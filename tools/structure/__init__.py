"""Stage: turn text into triples."""
