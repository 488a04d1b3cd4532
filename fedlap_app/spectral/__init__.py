"""Linear algebra of the offline phase: operators, solvers and the certificate of a basis."""
