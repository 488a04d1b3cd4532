"""What an offline phase will cost, worked out from sizes alone before it runs."""
