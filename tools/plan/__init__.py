"""Stage: decide what to ask next."""
