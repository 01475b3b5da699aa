"""Holds the tools that graphs call: a folder for each stage, and for what several stages share."""
