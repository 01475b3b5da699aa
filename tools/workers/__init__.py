"""Distribution of work over processes and machines, and caches that they share."""
