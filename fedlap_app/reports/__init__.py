"""One page that says what came of a run: the server's for whoever ran it, and each member's own."""
