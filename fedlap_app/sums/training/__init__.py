"""Training as a job of sealed sums: one sum a round, which the server adds and cannot read."""
