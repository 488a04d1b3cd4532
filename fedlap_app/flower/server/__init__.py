"""The server's side: gathers organisations, runs both phases, writes the run folder."""
