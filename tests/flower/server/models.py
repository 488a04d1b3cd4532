"""Models that runs end with, at the server and at organisations."""

from pathlib import Path

import numpy as np

from fedlap_app.methods.kept import training_job
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile


def model_of(summary):
    """The model in the run folder."""
    return model_in(Path(summary["run_folder"]))


def kept_in(store, run_id):
    """What an organisation keeps of a run."""
    return model_in(store / "jobs" / training_job(run_id))


def model_in(folder):
    """Parameters in a folder."""
    content = (folder / model_file.FILE).read_bytes()
    return ModelFile.from_bytes(content, folder.name).parameters


def same(some, *others):
    """Whether models are equal bit for bit."""
    return all(
        some.keys() == other.keys() and all(np.array_equal(some[k], other[k]) for k in some)
        for other in others
    )
