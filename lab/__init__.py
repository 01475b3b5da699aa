"""Experiments: a page each (question, command, table, decision), with its program where it is no product."""
