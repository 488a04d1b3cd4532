"""What exchanged vectors tell whom: curves, entries that can be solved, ledgers added up."""
