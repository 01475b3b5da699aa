"""Holds what a user chooses: settings, filters, the address of an index, and plug-ins by name."""
