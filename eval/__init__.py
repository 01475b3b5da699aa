"""Evaluates agents on question sets: benchmarks, metrics, runs, reports and studies."""
