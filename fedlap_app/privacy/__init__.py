"""What an attacker can learn of the edges from the offline phase."""
