"""Applications: the command line, and what is bundled for trying it."""
