import copy
import json
import pickle

import numpy as np
import pytest

from fedlap_app.secure.opened import Opened

SECRET = 0.123456789


@pytest.mark.parametrize(
    "leak",
    [
        pickle.dumps,
        json.dumps,
        np.asarray,
        np.array,
        float,
        int,
        list,
        bytes,
        copy.copy,
        lambda opened: opened[0],
        lambda opened: np.add(opened, 1),
        lambda opened: np.savez(open("/dev/null", "wb"), opened),  # noqa: PTH123, SIM115
    ],
)
def test_numbers_do_not_leave(leak):
    with pytest.raises(TypeError):
        leak(Opened(np.array([SECRET])))


def test_numbers_do_not_print_and_can_be_used():
    opened = Opened(np.array([SECRET]))
    assert "0.12" not in f"{opened} {opened!r}"
    assert len(opened) == 1
    assert opened.numbers[0] == SECRET
