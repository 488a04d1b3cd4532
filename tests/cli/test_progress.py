import io

from fedlap_app.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_gets_lines_now_and_then_with_rate_and_time_left():
    stream, clock = io.StringIO(), iter(range(1000))
    shown = Progress("fedlap+", stream, now=lambda: next(clock))
    for done in range(21):
        shown.show("training", done, 20, "rounds")
    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines) < 20
    assert lines[-1].startswith("fedlap+, training: 20/20 rounds, ")
    assert lines[-1].endswith(" 0 s left")


def test_rate_and_time_left_are_those_of_the_clock():
    time = [0.0]
    stream = io.StringIO()
    shown = Progress(stream=stream, now=lambda: time[0])
    shown.show("training", 0, 100, "rounds")
    time[0] = 10.0
    shown.show("training", 20, 100, "rounds")
    assert stream.getvalue() == "training: 20/100 rounds, 2 a second, 40 s left\n"


def test_one_round_is_called_a_round():
    stream = io.StringIO()
    Progress(stream=stream).round_done(1, 1, {})
    assert stream.getvalue() == "training: 1/1 round\n"


def test_a_terminal_gets_a_bar_for_each_phase():
    stream = Terminal()
    shown = Progress(stream=stream)
    shown.step_done(13, 13)
    shown.round_done(1, 2, {})
    shown.round_done(2, 2, {})
    shown.end()
    first, second = stream.getvalue().rstrip("\n").split("\n")
    assert "[########################] sealed sums: 13/13 steps" in first
    assert "[############------------] training: 1/2 rounds" in second
    assert "[########################] training: 2/2 rounds" in second
