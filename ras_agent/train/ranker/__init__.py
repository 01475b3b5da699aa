"""Training of the offline answerer's ranker."""
