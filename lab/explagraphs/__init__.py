"""The ExplaGraphs twin: a small model of stance whose designs are compared."""
