"""One task of the SuperNode, done by the ClientApp that is installed here.

``client_app.superexec`` starts ``python -I -m client_app.launch`` and writes the task's token to
its standard input. The bundle that comes with the run is never written down, imported or run: its
name, version and content are compared with what is installed, another version is refused, and
whatever else differs gets a line in the organisation's log. Every kind of task but a ClientApp's is
refused.
"""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from flwr.app import Context, Error, Message
from flwr.common.constant import ErrorCode, SubStatus
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor
from flwr.supercore.run import Run
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from client_app.superexec import add_connection, connect
from fedlap_app.errors import FedLapError, RunError
from fedlap_app.flower.client.answer import refuse
from fedlap_app.flower.client.handlers import require_version
from fedlap_app.flower.client.organisation import federation_file
from fedlap_app.flower.package import installed_code, modules_that_differ
from fedlap_app.logs import use_logs_as_asked
from fedlap_app.privacy.federation import read_federation_file
from fedlap_app.store.places import own_store
from fedlap_app.version import VERSION

BUNDLE = "fedlap/fedlap"
_LOOK_SECONDS = 0.2
_log = logging.getLogger("fedlap")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the task whose token is on the standard input."""
    parser = argparse.ArgumentParser(prog="python -I -m client_app.launch", description=__doc__)
    add_connection(parser)
    parser.add_argument("--kind", required=True, help="of the task, as Flower names it")
    parser.add_argument("--parent-pid", type=int, required=True, help="end when it ends")
    given = parser.parse_args(arguments)
    end_at_once(given.parent_pid)
    token = RuntimeTokenHttpInterceptor(sys.stdin.readline().strip())
    client = connect(given, "flwr-clientapp", token)
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))
    heartbeat.start()
    try:
        do_task(client, given.kind)
    finally:
        if heartbeat.is_running:
            heartbeat.stop()
        client.close()


def end_at_once(parent: int) -> None:
    """End this process when its parent has ended, or at an interrupt, whatever it waits for.

    An interrupt that Python handles wakes no main thread that sleeps, leaves one waiting for a
    heartbeat that tries for ever to reach an absent SuperNode, and comes to nothing in a process
    that was started in the background of a shell. Nothing is lost: an organisation's store is whole
    at any time.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        # Who is the parent changes even where nobody has asked yet how the old one ended.
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def do_task(client: RuntimeHttpClient, kind: str) -> None:
    """Fetch the message of a task, answer or refuse it, and end the task."""
    if kind != TaskType.CLIENT_APP:
        use_logs_as_asked()
        reason = f"a task of kind {kind[:40]!r} is refused: only this organisation's ClientApp runs"
        _log.error("%s", reason)
        try:
            message, context, *_ = pull_task_input(client)
            push_message(client, _error(message, reason), context)
        finally:
            push_task_output(client, None, SubStatus.FAILED, reason)
        return
    message, context, run, fab = pull_task_input(client)
    try:
        reply = reply_of(message, context, run, fab.content)
    except Exception as error:
        # The message of an error could quote data, so that it stays here.
        _log.exception("The ClientApp failed")
        push_message(client, _error(message, f"{type(error).__name__} in the client"), context)
        push_task_output(client, context, SubStatus.FAILED, type(error).__name__)
        return
    push_message(client, reply, context)
    push_task_output(client, context, SubStatus.COMPLETED, "")
    write_report(context)


def write_report(context: Context) -> None:
    """Write the organisation's own report once it keeps a newer model; the reply is gone already.

    Whatever goes wrong here is told in the organisation's own log and stops nothing.
    """
    if "data-dir" not in context.node_config:
        return
    folder = Path(str(context.node_config["data-dir"]))
    store = Path(str(context.node_config.get("store-dir", own_store(folder))))
    if not is_due(folder, store):
        return
    try:
        from fedlap_app.reports.writing import report_organisation

        _log.info("Report of this organisation: %s", report_organisation(folder, store=store))
    except Exception:
        _log.exception("The report of this organisation could not be written")


def is_due(folder: Path, store: Path) -> bool:
    """Whether the store holds a model that the report in the folder does not know."""
    models = [path.stat().st_mtime_ns for path in store.glob("jobs/train-*/model.npz")]
    page = folder / "report.html"
    return bool(models) and (not page.is_file() or page.stat().st_mtime_ns < max(models))


def _error(message: Message, reason: str) -> Message:
    return Message(Error(ErrorCode.LOAD_CLIENT_APP_EXCEPTION, reason), reply_to=message)


def reply_of(message: Message, context: Context, run: Run, bundle: bytes) -> Message:
    """The installed ClientApp's reply, or the refusal of a run of another version."""
    from client_app.app import app

    try:
        check_version(run, context)
    except FedLapError as error:
        return refuse(message, context, error)
    differ = modules_that_differ(bundle)
    if differ:
        _log.warning(
            "The bundle of run %s has other code than the package that is installed and runs here: "
            "%s of its modules differ, the first is %s",
            run.run_id,
            len(differ),
            repr(differ[0])[:200],
        )
    return app(message, context)


def check_version(run: Run, context: Context) -> None:
    """Refuse a run of another version than is installed, or than the federation agreed on."""
    file = federation_file(context)
    if file is not None:
        require_version(file)
        code = read_federation_file(file).code
        if code not in ("", installed_code()):
            _log.warning(
                "The federation file names other code (%.20r...) than the package that is "
                "installed and runs here (%.20r...)",
                code,
                installed_code(),
            )
    ours = VERSION
    if (run.fab_id, run.fab_version) != (BUNDLE, ours):
        brought = f"{run.fab_id} {run.fab_version}"[:100]
        raise RunError(
            f"it has {BUNDLE} {ours} installed and the run brings {brought!r}; submit version "
            f"{ours}, or agree on a new one that every organisation installs"
        )


if __name__ == "__main__":
    main()
