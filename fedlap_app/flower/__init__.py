"""What carries methods over Flower: the apps at both ends, grids, records and submission."""
