"""Training of the offline answerer's confidence."""
