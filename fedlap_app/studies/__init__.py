"""Benchmarks and tables that compare methods, back ends and grids."""
