"""Programs that measure the project: speed, retrieval tables, path instances. They are not part of the wheel."""
