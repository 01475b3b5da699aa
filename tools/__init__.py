"""The tools that graphs call, a folder for each stage."""
