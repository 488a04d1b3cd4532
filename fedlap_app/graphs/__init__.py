"""What an organisation holds: subgraphs, data sets, partitions and the organisation folder."""
