"""The ServerApp: reads the settings, runs the phases, says in one sentence what went wrong."""

import logging
from logging import ERROR, INFO

from flwr.app import Context
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from fedlap_app.errors import ConfigError, FedLapError
from fedlap_app.flower.server.observer import LogObserver
from fedlap_app.flower.server.run import run
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.logs import use_logs_as_asked
from fedlap_app.relevance import refuse_unread
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names

use_logs_as_asked()
logging.getLogger("flwr").addFilter(lambda record: not is_chatter(record))
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run both phases with the settings of the run configuration."""
    try:
        run(grid, _settings(grid, context), LogObserver())
    except FedLapError as error:
        log(ERROR, "%s", error)
        raise


def is_chatter(record: logging.LogRecord) -> bool:
    """Whether a line is one of those that Flower's strategies write beside ours in every round."""
    return record.levelno <= INFO and "/serverapp/strategy/" in record.pathname.replace("\\", "/")


def _settings(grid: Grid, context: Context) -> Settings:
    """Settings of the run; a refusal is left in a run folder, where `fedlap run` finds it."""
    try:
        return parse_settings(refuse_unread(context.run_config))
    except ConfigError as error:
        folder = RunFolder.create(Settings(), grid.run.run_id)
        folder.write_json(names.ERROR, {"error": str(error)})
        raise
