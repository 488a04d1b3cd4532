"""Sums that the adder cannot read: back ends, keys, channels and packing."""
