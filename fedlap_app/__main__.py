"""`python -m fedlap_app` is the command `fedlap`."""

from fedlap_app.cli import main

main(prog_name="fedlap")
