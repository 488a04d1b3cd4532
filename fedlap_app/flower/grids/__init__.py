"""Ways for a message to reach a client: in one process, in a process each, or over a network."""
