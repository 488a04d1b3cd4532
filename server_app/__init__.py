"""The Flower ServerApp: the phases of a run, the grids it runs on and the run folder."""
