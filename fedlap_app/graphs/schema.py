"""The schema that all organisations share: names of classes and features, and their kinds."""

import hashlib
import json

from fedlap_app.graphs.subgraph import Subgraph


def schema_digest(subgraph: Subgraph) -> str:
    """Hash by which organisations compare their schema without telling the names."""
    kinds = [subgraph.kinds] if subgraph.kinds else []
    names = [subgraph.classes, subgraph.feature_names, *kinds]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()
