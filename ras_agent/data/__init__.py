"""Holds the files that ship with the package: sample passages and questions, and the weights of the offline
mode.
"""
