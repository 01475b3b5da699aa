"""Questions over tables, which `python -m lab.tables` asks."""
