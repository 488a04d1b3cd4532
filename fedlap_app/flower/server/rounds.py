"""One round of training together: a method's two sides with Flower's strategy between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedlap_app.flower.grids.member_grid import Member, MemberGrid
from fedlap_app.flower.records import from_arrays, number, packed, read_in_place, records_in
from fedlap_app.flower.server import replies
from fedlap_app.flower.server.strategies import strategy_of
from fedlap_app.flower.task import task_record
from fedlap_app.methods.base import MODEL, Method, Parameters, State
from fedlap_app.methods.scores import Layout
from fedlap_app.methods.task import Task

Replies = Mapping[str, RecordDict]


@dataclass
class Rounds:
    """The rounds of one stage.

    Attributes
    ----------
    grid, members
        Who trains.
    method
        What is trained.
    task
        Run and stage.
    layout
        How long the scores of a model are.
    """

    grid: MemberGrid
    members: Sequence[Member]
    method: Method
    task: Task
    layout: Layout
    _strategy: FedAvg = field(init=False)
    _sent: tuple[Parameters, ArrayRecord] | None = None

    def __post_init__(self) -> None:
        self._strategy = strategy_of(self.method)

    def exchange(self, number: int, state: State) -> Replies:
        """Send the state to all members; what they answer, by their names in order.

        The strategy says whom to ask, the method what each of them gets.
        """
        config = task_record(self.task)
        asked = self._strategy.configure_train(number, self._model(state), config, self.grid)
        config = next(iter(asked)).content.config_records["config"]
        contents = {member.node_id: self._content(member, state, config) for member in self.members}
        messages = [Message(content, node, "train") for node, content in contents.items()]
        timeout = self.method.settings.step_timeout
        found: dict[str, RecordDict] = {}
        sums, most = self.method.num_sums(state.model), self.method.settings.largest_weight
        for reply in self.grid.send_and_receive(messages, timeout=timeout):
            name = self.grid.name_of(reply)
            with replies.of(name):
                sent = records_in(contents[reply.metadata.src_node_id], MODEL)[MODEL]
                replies.require_update(reply.content, sent, self.layout, sums, most)
            found[name] = reply.content
        return found

    def join(self, number: int, state: State, answered: Replies) -> State:
        """The state after a round.

        A model that was not trained for lack of training nodes does not count.
        """
        updates = {name: records_in(content, MODEL) for name, content in answered.items()}
        trained = [_message(content) for content in answered.values() if _weight(content)]
        mean, _ = self._strategy.aggregate_train(number, trained)
        model = state.model if mean is None else self._unpacked(mean)
        return self.method.join(state, model, updates)

    def ask(self, message_type: str, state: State, choices: int = 1) -> Replies:
        """Replies of the members to a state after the rounds, each with that many scores."""
        config = task_record(self.task)

        def content(member: Member) -> RecordDict:
            return self._content(member, state, config)

        timeout = self.method.settings.step_timeout
        answered = self.grid.ask(self.members, message_type, content, timeout)
        for name, reply in answered.items():
            with replies.of(name):
                replies.require_scores(reply, self.layout, choices=choices)
        return answered

    def _content(self, member: Member, state: State, config: ConfigRecord) -> RecordDict:
        records = dict(self.method.send(state, member.name))
        if records.get(MODEL) is state.model:
            records.pop(MODEL)
            return RecordDict({MODEL: self._model(state), **packed(records), "config": config})
        return RecordDict({**packed(records), "config": config})

    def _model(self, state: State) -> ArrayRecord:
        """The global model as one record, which Flower sends once."""
        if self._sent is None or self._sent[0] is not state.model:
            self._sent = state.model, packed({MODEL: state.model})[MODEL]
        return self._sent[1]

    def _unpacked(self, mean: ArrayRecord) -> Parameters:
        model = from_arrays(mean)
        self._sent = model, mean
        return model


def _weight(content: RecordDict) -> float:
    return number(content, "num-examples")


def _message(content: RecordDict) -> Message:
    """A reply as a strategy takes it; other records than the model's are the method's own."""
    model = content.array_records[MODEL]
    read_in_place(model)
    return Message(RecordDict({MODEL: model, "metrics": content["metrics"]}), 0, "train")
