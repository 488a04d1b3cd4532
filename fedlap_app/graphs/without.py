"""A part of a graph without some of its nodes and edges."""

from dataclasses import replace

import numpy as np

from fedlap_app.graphs.arrays import Bools, Strings
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
    stays = ~np.isin(np.concatenate([part.ids, part.external_ids]), gone)
    edges: Bools = np.logical_and.reduce(stays[part.edge_index], axis=0)
    return with_edges(part, edges, stays[: part.num_nodes])


def with_edges(part: Subgraph, edges: Bools, nodes: Bools | None = None) -> Subgraph:
    """The part with some of its edges, and with those foreign nodes that they reach.

    Parameters
    ----------
    part
        What an organisation holds.
    edges
        (E,) which edges stay.
    nodes
        (n,) which own nodes stay, all ends of these edges among them (default: all).
    """
    own = np.ones(part.num_nodes, dtype=bool) if nodes is None else nodes
    index = part.edge_index[:, edges]
    stays = np.zeros(part.num_nodes + part.num_external, dtype=bool)
    stays[index.ravel()] = True
    stays[: part.num_nodes] = own
    foreign = stays[part.num_nodes :]
    return replace(
        part,
        ids=part.ids[own],
        external_ids=part.external_ids[foreign],
        external_owners=part.external_owners[foreign],
        edge_index=(np.cumsum(stays) - 1)[index],
        edge_weight=part.edge_weight[edges],
        features=part.features[own],
        labels=part.labels[own],
        train_mask=part.train_mask[own],
        val_mask=part.val_mask[own],
        test_mask=part.test_mask[own],
    )
