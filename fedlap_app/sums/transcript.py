"""A hash chain over the sums that a member has received.

Every member chains the small sums as it gets them and gives the chain's digest as `context` when
it seals and opens the next sum, where it goes into the weights of the check slots. A server that
has told two members different things makes their weights differ, and the next sum is refused by
everyone. The digest may also travel inside sealed messages.
"""

from dataclasses import dataclass

from fedlap_app.sums.kdf import digest


@dataclass(frozen=True)
class Transcript:
    """Digest of everything received so far, in order."""

    digest: bytes

    @classmethod
    def start(cls, job: str) -> "Transcript":
        """Empty transcript of a job."""
        return cls(digest("transcript", job))

    def extend(self, received: bytes) -> "Transcript":
        """Transcript after one more sum, as its bytes came from the server."""
        return Transcript(digest("transcript step", self.digest, received))
