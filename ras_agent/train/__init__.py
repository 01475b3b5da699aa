"""Holds the programs that train models. Each module begins with its command, and writes weights with a card in JSON."""
