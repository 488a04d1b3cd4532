"""The schema that all organisations share: names of classes and features, and their kinds."""

import hashlib
import json

from fedlap_app.graphs.subgraph import Subgraph


def schema_digest(subgraph: Subgraph) -> str:
    """Hash by which organisations compare their schema without telling the names."""
    names = [
        subgraph.classes,
        subgraph.feature_names,
        *([subgraph.kinds] if subgraph.kinds else []),
    ]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()
