"""How features are read where no sums over organisations say so: by one table alone."""

from typing import TYPE_CHECKING

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.encoding import Encoding, unchanged
from fedlap_app.graphs.kinds import CATEGORY
from fedlap_app.graphs.learned import asks, learn_alone
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.registry import method_class

if TYPE_CHECKING:
    from fedlap_app.settings import Settings


def own_encoding(subgraph: Subgraph, settings: "Settings") -> Encoding | None:
    """The encoding that follows from one table, where a column asks for one; None: as it is.

    Categories have the same columns everywhere only if organisations agreed on them.
    """
    if not asks(subgraph):
        return None
    if CATEGORY in subgraph.kinds and method_class(settings.method).exchanges:
        raise ConfigError(
            "its categories need a dictionary that three organisations or more (two in a "
            "simulation) agree on: set standardise = 'together', or leave these columns out"
        )
    return learn_alone(subgraph) if settings.standardise != "none" else unchanged(subgraph)
