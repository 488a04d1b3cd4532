"""A part of a graph as it was before some nodes came."""

from dataclasses import replace

import numpy as np

from fedlap_app.graphs.arrays import Strings
from fedlap_app.graphs.subgraph import Subgraph


def without(part: Subgraph, gone: Strings) -> Subgraph:
    """The part as if some nodes, its own or foreign ones, had never been there.

    Parameters
    ----------
    part
        What an organisation holds.
    gone
        Ids of nodes; those that it does not know do not matter.
    """
    size = part.num_nodes
    stays = ~np.isin(np.concatenate([part.ids, part.external_ids]), gone)
    edges = stays[part.edge_index].all(axis=0)
    index = part.edge_index[:, edges]
    # A foreign node without an edge is none that the organisation knows.
    used = np.zeros(stays.size, dtype=bool)
    used[index.ravel()] = True
    stays[size:] &= used[size:]
    place = np.cumsum(stays) - 1
    own, foreign = stays[:size], stays[size:]
    return replace(
        part,
        ids=part.ids[own],
        external_ids=part.external_ids[foreign],
        external_owners=part.external_owners[foreign],
        edge_index=place[index],
        edge_weight=part.edge_weight[edges],
        features=part.features[own],
        labels=part.labels[own],
        train_mask=part.train_mask[own],
        val_mask=part.val_mask[own],
        test_mask=part.test_mask[own],
    )
