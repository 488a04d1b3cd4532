"""Random draws of training in a deployment: they follow from the organisation's own secret."""

from fedlap_app.sums.kdf import derive


def round_seed(organisation: bytes, settings: str, stage: int, number: int) -> int:
    """Seed of dropout in one round, which nobody else can work out.

    No nonce of a job enters it, so that a run repeats itself; nonces enter pads only.

    Parameters
    ----------
    organisation
        Secret of the organisation.
    settings
        Digest of the settings of the run.
    stage, number
        Where in training it is used.
    """
    drawn = derive(organisation, "dropout", settings, stage, number, length=8)
    return int.from_bytes(drawn, "little") >> 1
