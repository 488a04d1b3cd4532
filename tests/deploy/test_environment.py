import subprocess

import pytest

from fedlap_app.deploy.environment import read_environment, write_environment
from fedlap_app.errors import ConfigError


def test_a_new_file_means_the_same_to_a_shell(tmp_path):
    path = tmp_path / "a.env"
    write_environment(path, "About it.", {"ONE": "a $b `c` \\", "TWO": 2})
    assert path.read_text().startswith("# About it.\n")
    assert read_environment(path) == {"ONE": "a $b `c` \\", "TWO": "2"}
    script = f'. "{path}"; printf "%s|%s" "$ONE" "$TWO"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "a $b `c` \\|2"


def test_known_values_change_in_their_places_and_other_lines_stay(tmp_path):
    path = tmp_path / "a.env"
    path.write_text("# mine\nexport ONE=old\n\nLOG=json\nONE=older\nONE_MORE=x\n")
    write_environment(path, "About it.", {"ONE": "new", "TWO": 2})
    assert path.read_text() == "# mine\nONE='new'\n\nLOG=json\nONE_MORE=x\nTWO='2'\n"


def test_a_value_with_a_quote_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="has a quote"):
        write_environment(tmp_path / "a.env", "About it.", {"ONE": "it's"})
    assert not (tmp_path / "a.env").exists()


def test_no_file_has_no_values(tmp_path):
    assert read_environment(tmp_path / "a.env") == {}
