"""Applications: each translates input and calls one function."""
