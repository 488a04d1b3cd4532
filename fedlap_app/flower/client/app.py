"""The ClientApp: routes each message of the server to its handler."""

from functools import partial

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedlap_app.flower.client import handlers, offline, sealed
from fedlap_app.flower.client.answer import answer
from fedlap_app.logs import use_logs_as_asked

use_logs_as_asked()
app = ClientApp()


@app.query("join")
def join(message: Message, context: Context) -> Message:
    """Say who this is, for the comparison before the first round."""
    return answer(message, context, partial(handlers.join, run=context.run_id))


@app.query("offline")
def offline_step(message: Message, context: Context) -> Message:
    """Take one step of the offline phase."""
    return answer(message, context, offline.step)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Evaluate the global model, train it on the own data and return it."""
    handler = partial(handlers.train, run=context.run_id, state=context.state)
    return answer(message, context, handler)


@app.train("alone")
def train_alone(message: Message, context: Context) -> Message:
    """Train a model of the own, without any exchange."""
    return answer(message, context, partial(handlers.train_alone, run=context.run_id))


@app.train("sealed")
def train_sealed(message: Message, context: Context) -> Message:
    """Take part in one sealed sum of training."""
    return answer(message, context, partial(sealed.step, run=context.run_id))


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Evaluate the global model."""
    return answer(message, context, partial(handlers.evaluate, run=context.run_id))


@app.evaluate("keep")
def keep(message: Message, context: Context) -> Message:
    """Evaluate the final model and keep it in the store."""
    return answer(message, context, partial(handlers.keep, run=context.run_id))
