from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = ["--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden",
         "8", "--vectors", "12"]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_reports_of_the_newest_run_and_of_an_organisation(tmp_path, own_home):
    orgs = tmp_path / "orgs"
    assert (
        run("partition", "banks", "--clients", "3", "--accounts", "240", "--out", orgs).exit_code
        == 0
    )
    assert run("train", "--data", orgs, *SMALL[4:]).exit_code == 0
    shown = run("report")
    (folder,) = (own_home / "runs").iterdir()
    assert shown.output == f"report: {folder / 'report.html'}\n"
    assert (folder / "report.html").is_file()
    own = run("report", "--organisation", orgs / "bank-00")
    assert own.output == f"report: {orgs / 'bank-00' / 'report.html'}\n"
    assert "Report of bank-00" in (orgs / "bank-00" / "report.html").read_text()


def test_what_cannot_be_reported_is_told(tmp_path, own_home):
    assert "there is no run" in run("report").output
    refused = run("report", "--organisation", tmp_path, "12")
    assert refused.exit_code == 2
    assert "--run" in refused.output
    refused = run("report", tmp_path)
    assert "no run folder" in refused.output
