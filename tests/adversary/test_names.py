"""Names that a shell or a file system takes for something else, and that people mistake."""

from dataclasses import replace

import pytest

from client_app.app import app
from fedlap_app.errors import ConfigError, DataError, ProtocolError, RunError
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.graphs.checks import check_name
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.graphs.lookalikes import alike
from fedlap_app.privacy.federation import read_federation_file
from fedlap_app.privacy.pins import org_pins
from fedlap_app.sums.card import issue_card, verify_cards
from fedlap_app.sums.identity import Identity

from .phases import HONEST

CYRILLIC_A = "\u0430"
BAD = [
    "-rf",
    "--help",
    "~root",
    "../bank",
    "a/b",
    "a\\b",
    ".hidden",
    "a\nb",
    "a\x1b[2Jb",
    "a\u202eb",
    f"b{CYRILLIC_A}nk-00",  # one Cyrillic letter among Latin ones
    "b\u03bfnk",  # a Greek one
    "\u0441\u043e\u0441\u043e",  # all Cyrillic, and nobody can tell
    "\uff42ank-00",  # a wide form
    "\U0001d41bank",  # a bold one
    "\ua4d0\ua4ee\ua4e0\ua4d7",  # BANK in Lisu, which has letters that are Latin ones to look at
    "\u13f4\u13aa\u13df",  # the same with Cherokee
    "\u0299\u1d00\u0274\u1d0b",  # small capitals
    "ban\u0138",  # kra
    "bank\ufe0f",  # a selector of a variant, which shows nothing
    "bank\u034f-00",
    "bank\u200b-00",
    "bank\u1160",  # fills the place of a vowel
    "ba\u0338nk",  # an overlay
    "bank" + "\u0301" * 40,  # marks that cover the line above
    "bank\u05b0",  # a mark of another script
    "bank\u2215a",  # a slash to look at
    "bank-\u09ea",  # Bengali 4 looks like 8
    "\u2502bank",  # a line
    "bank\U0001d173",  # begins a beam of notes
    "b" * 101,
    "\u00fc" * 51,  # 102 bytes
    pytest.param("b" * 1_000_000, id="endless"),
]
GOOD = [
    "bank-00",
    "Bank of \u00c5land (2)",
    "Z\u00fcrich",
    "\u0411\u0430\u043d\u043a",
    "\u94f6\u884cA",
    "\u682a\u5f0f\u4f1a\u793e\u30ab\u30ca\u30fc",
    "\u03b1\u03b2\u03b3\u03b4",
    "client_1.eu",
    "L\u2019Or\u00e9al \u2013 Z\u00fcrich",
    "\u0627\u0644\u0628\u0646\u0643",
    "\u092c\u0948\u0902\u0915",
    "\u0e18\u0e19\u0e32\u0e04\u0e32\u0e23",
    "\uc740\ud589 A",
    "\u1eb9\u0300k\u1ecd",  # Yoruba has letters of two marks
    "Ng\u00e2n h\u00e0ng Vi\u1ec7t",
    "\u05d1\u05e0\u05e7",
    "b" * 100,
]
TWINS = [
    ("bank-00", "Bank-00"),
    ("bank-1", "bank-l"),
    ("BANK-I", "bank-1"),
    ("bank-O", "bank-0"),
    ("coco", "\u0441\u043e\u0441\u043e"),
    ("bank-a", f"bank-{CYRILLIC_A}"),
    ("modern", "modem"),
    ("a-b", "a\u2010b"),
    ("bank a", "bank  a"),
    ("Bankhaus", "B\u00e4nkhaus"),
    ("bank", "ba\u1e47k"),  # a dot below
    ("bank-00", "bank\u4e0000"),  # the Chinese one
    ("\u30ed\u30ab\u30cb", "\u53e3\u529b\u4e8c"),  # Japanese syllables, Chinese words
    ("bold", "bo\u0142d"),
]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_is_refused(name):
    with pytest.raises(DataError, match="organisation name") as refusal:
        check_name(name)
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize("name", GOOD)
def test_a_name_that_stays(name):
    check_name(name)


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_two_names_that_look_alike(one, other):
    assert alike(["x", one, other]) == (one, other)


def test_names_that_do_not():
    assert alike([f"bank-{number:03d}" for number in range(1000)]) is None
    assert alike(GOOD) is None


@pytest.mark.parametrize("name", ["-rf", f"b{CYRILLIC_A}nk-00"])
def test_a_card_with_such_a_name(name):
    """A stranger chooses the name on its card; trust on first use would remember it."""
    honest, stranger = Identity.generate(), Identity.generate()
    mine = issue_card(honest, "bank-00", bytes(32), "aa")
    cards = [mine, issue_card(stranger, name, bytes(range(32)), "aa")]
    with pytest.raises(ProtocolError, match="A card is refused"):
        verify_cards(cards, mine=mine, pins={}, trust_on_first_use=True)


def test_cards_whose_names_look_alike():
    mine = issue_card(Identity.generate(), "bank-01", bytes(32), "aa")
    other = issue_card(Identity.generate(), "bank-0l", bytes(range(32)), "aa")
    with pytest.raises(ProtocolError, match="look alike"):
        verify_cards([mine, other], mine=mine, pins={}, trust_on_first_use=True)


@pytest.fixture
def folders(tmp_path):
    """Folders of three organisations without edges between them, so that one can be renamed."""
    found = []
    for subgraph in load_federation(HONEST.data_spec):
        found.append(tmp_path / subgraph.name)
        write_folder(subgraph, found[-1])
    return found


def join(folders):
    settings = replace(HONEST, method="fedavg", spectral=False)
    configs = folder_configs(folders)
    grid = MemberGrid(InProcessGrid(app, configs, settings.to_config(), run_id=new_run_id()))
    return gather(grid, settings)


def renamed(folder, name):
    path = folder / "org.toml"
    path.write_text(path.read_text().replace('"bank-01"', f'"{name}"'), encoding="utf-8")


@pytest.mark.parametrize("name", ["-rf", f"b{CYRILLIC_A}nk-01"])
def test_an_organisation_with_such_a_name_joins_nothing(folders, name):
    renamed(folders[1], name)
    with pytest.raises(RunError, match=r"bank-01: its data cannot be used"):
        join(folders)


def test_organisations_whose_names_look_alike_join_nothing(folders):
    renamed(folders[1], "bank-0O")
    with pytest.raises(RunError, match="'bank-00' and 'bank-0O' look alike"):
        join(folders)


def test_a_federation_file_with_such_names(tmp_path):
    """A coordinator sends the file; every organisation takes its pins from it."""
    text = """
name = "banks"
issued = 2026-01-01T00:00:00Z
version = "1"
flower = "1"
[server]
address = "h:1"
names = ["h"]
port = 1
listen = "0.0.0.0:1"
certificate-expires = 2027-01-01T00:00:00Z
[authority]
sha256 = "00"
expires = 2027-01-01T00:00:00Z
"""
    path = tmp_path / "federation.toml"
    for names, reason in (
        (("bank-00", "-rf"), "organisation name"),
        (("bank-00", f"b{CYRILLIC_A}nk-00"), "mixes letters"),
        (("bank-00", "bank-0O"), "look alike"),
    ):
        members = "".join(
            f'[[members]]\nname = "{name}"\nfingerprint = "f{number}"\n'
            f'supernode-key = "k{number}"\nschema = "s"\n'
            for number, name in enumerate(names)
        )
        path.write_text(text + members, encoding="utf-8")
        with pytest.raises(ConfigError, match=reason):
            read_federation_file(path)


def test_a_pin_for_such_a_name(tmp_path):
    (tmp_path / "org.toml").write_text(f'[peers]\n"b{CYRILLIC_A}nk" = "abcd"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="mixes letters"):
        org_pins(tmp_path / "org.toml")
