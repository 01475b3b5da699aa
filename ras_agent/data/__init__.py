"""Sample data that ships with the package."""
