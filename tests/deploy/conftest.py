import pytest

from fedlap_app.deploy.organisation import make_request, place_of
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder

SMALL = DataSpec(dataset="banks", clients=3, accounts=200)


@pytest.fixture
def places(tmp_path):
    """Three organisations, each with a folder of data and one for its keys."""
    made = {}
    for number, part in enumerate(load_federation(SMALL)):
        data = tmp_path / "data" / part.name
        write_folder(part, data)
        made[part.name] = place_of(data, tmp_path / "orgs" / part.name, port=9094 + number)
    return made


@pytest.fixture
def requests(places):
    return {name: make_request(place) for name, place in places.items()}
