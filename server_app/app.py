"""The ServerApp: reads the settings, runs the phases, says in one sentence what went wrong."""

from logging import ERROR

from flwr.app import Context
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from fedlap_app.errors import FedLapError
from fedlap_app.settings import parse_settings
from server_app.observer import LogObserver
from server_app.run import run

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run both phases with the settings of the run configuration."""
    try:
        run(grid, parse_settings(context.run_config), LogObserver())
    except FedLapError as error:
        log(ERROR, "%s", error)
        raise
