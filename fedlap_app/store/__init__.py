"""Files and folders on this machine: whole or absent, private, locked, in one place."""
