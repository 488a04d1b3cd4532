import os

from fedlap_app.methods.kept import kept_jobs, training_job
from fedlap_app.store.folders import Store


def test_the_newest_run_is_last_whatever_its_number(tmp_path):
    store = Store(tmp_path)
    numbers = [5, 900, 3, 2**63]
    for age, number in enumerate(numbers):
        path = store.job(training_job(number)).write("model.npz", b"").parent
        os.utime(path, (age, age))
    assert kept_jobs(store) == [training_job(number) for number in numbers]
