"""One file a method: what a client does in a training round and what the server asks for."""
