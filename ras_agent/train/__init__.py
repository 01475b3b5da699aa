"""Training entry points: each module begins with the command that runs it and writes weights with a JSON card."""
