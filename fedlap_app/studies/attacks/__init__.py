"""Attacks on what the parties of a recorded run saw, and how well they do."""
