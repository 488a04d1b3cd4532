"""An organisation's side: handlers, what it keeps, and how much a server may ask."""
