"""Holds the applications: the command line, the server, and the bundled sample."""
