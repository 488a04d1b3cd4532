"""Sums under additively homomorphic CKKS: parameters, keys, packing, ciphertexts, the back end."""
