"""Reports of evaluation runs: figures, plots, an HTML page and Markdown."""
