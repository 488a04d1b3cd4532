"""The package itself is light: what it offers is imported when it is used."""

import subprocess
import sys

import fedlap_app


def test_the_import_is_light():
    code = (
        "import time, sys; import fedlap_app; spent = time.process_time();"
        "heavy = ('torch', 'flwr', 'numpy', 'pandas');"
        "print(spent, [each for each in heavy if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, heavy = done.stdout.split(" ", 1)
    assert float(seconds) < 0.6
    assert heavy.strip() == "[]"


def test_every_name_is_there():
    for name in fedlap_app.__all__:
        assert getattr(fedlap_app, name).__doc__
    assert set(fedlap_app.__all__) <= set(dir(fedlap_app))
