"""The organisation's SuperExec: it starts the installed ClientApp and nothing that was delivered.

``python -I -m client_app.superexec`` stands where Flower's ``flower-superexec`` would install and
run the bundle of each run. It fetches tasks of every kind from the SuperNode, since one that nobody
fetches would hold up all that follow, and starts ``client_app.launch`` for each, which refuses all
kinds but one. Python runs isolated (``-I``): neither the folder in which a process starts nor
PYTHONPATH can put another module in the place of an installed one.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from logging import INFO

from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore import log
from flwr.supercore.auth import add_superexec_auth_secret_args, load_superexec_auth_secret
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.tls import validate_and_resolve_root_certificates
from flwr.supercore.utils import disable_process_dumping

_SIGNED = frozenset({"/flwr.proto.Runtime/AcquireTask"})
_POLL_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch tasks and start a process for each, until it is ended."""
    disable_process_dumping(strict=False)
    parser = argparse.ArgumentParser(prog="python -I -m client_app.superexec", description=__doc__)
    add_connection(parser)
    add_superexec_auth_secret_args(parser)
    given = parser.parse_args(arguments)
    secret = load_superexec_auth_secret(given.superexec_auth_secret_file)
    signing = (
        [SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=_SIGNED)]
        if secret
        else []
    )
    client = connect(given, "SuperExec", *signing)
    log(INFO, "SuperExec of FedLap: runs the installed ClientApp only")
    while True:
        answer = client.AcquireTask(AcquireTaskRequest(supported_task_types=[*TaskType]))
        if answer.HasField("task") and answer.token:
            start_launcher(given, answer.task.type, answer.token)
        time.sleep(_POLL_SECONDS)


def add_connection(parser: argparse.ArgumentParser) -> None:
    """The options that say where the SuperNode is, under Flower's names."""
    parser.add_argument("--runtime-api-address", required=True, help="HOST:PORT of the SuperNode")
    parser.add_argument("--root-certificates", help="file with the authority of its certificate")
    parser.add_argument("--insecure", action="store_true", help="connect without TLS")


def connect(
    given: argparse.Namespace, name: str, *more: ProtobufClientInterceptor
) -> RuntimeHttpClient:
    """A client of the SuperNode's Runtime API."""
    return RuntimeHttpClient.from_server_address(
        server_address=given.runtime_api_address,
        insecure=given.insecure,
        root_certificates=validate_and_resolve_root_certificates(
            given.root_certificates, given.insecure
        ),
        interceptors=[RuntimeVersionHttpInterceptor(component_name=name), *more],
        retry_invoker=make_simple_http_retry_invoker(),
    )


def start_launcher(given: argparse.Namespace, kind: str, token: str) -> None:
    """Start the process of one task; its token goes through a pipe, where nobody else sees it."""
    words = ["--runtime-api-address", given.runtime_api_address, "--parent-pid", str(os.getpid())]
    words += ["--insecure"] if given.insecure else []
    if given.root_certificates:
        words += ["--root-certificates", given.root_certificates]
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "client_app.launch", *words, f"--kind={kind}"],
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(f"{token}\n".encode())


if __name__ == "__main__":
    main()
