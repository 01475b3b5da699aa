"""Programs that made the weights in the package: the reader of the offline mode, and the sets of the GFM network."""
