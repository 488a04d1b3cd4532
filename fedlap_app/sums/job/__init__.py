"""The offline phase: how organisations and server run a program of sealed sums together.

`member` is one organisation's side, a state machine whose whole state is in a store folder;
`coordinator` is the server's side, which holds no key and only adds. Both speak in requests and
replies (`messages`); whoever carries them (`client_app`, `server_app`, a test) sends one request
to every member and gives every reply to the coordinator.

The handshake, three round trips::

    hello    -> an id that the server drew             <- signed card; finished and open jobs
    cards    -> the cards of all                       <- one sealed message for each peer: part of
                                                          the group key, digest of the edges
                                                          shared, slots of the nodes shared
    pairs    -> what the peers sealed for this member  <- contribution to the totals of the graph

When the edges of a pair differ, both reply to `pairs` with sealed hashes of their edges; one more
round trip, `compare`, gives the counts for the error, and the ids stay in local logs. When all
hold the result of the same job, `reuse` (the cards again) ends the phase after `hello`. When
all have the job of the server's checkpoint open, the phase goes on there after `hello`.

What follows is up to the program (`sums.program`). One without sums ends here, with what the reply
to `pairs` says. Otherwise there is a round trip a round::

    sums     -> the sum for this member, the small sum <- a contribution to the block sum of every
    ...                                                   other member, one to the small sum
    sums     -> the last sums                          <- done

and one more if a leader solves a small problem for all::

    sums     -> the last sums                          <- of the leader: the sealed solution
    share    -> the leader's message, the price        <- done

Rules that make it safe to die anywhere:

- A request is numbered within its job. The next one is answered once: state and reply are written
  to one file, atomically, before the reply leaves. The same request again gets the stored bytes; an
  older, altered or premature one is refused with its reason.
- What is in files of its own is written before that file, and nothing before it depends on them:
  whoever dies in between writes the same columns again.
- The server writes the next requests (ciphertexts) to its checkpoint before it sends them.
- Pads belong to (job, step). A job id is a hash of everyone's nonce, so it is never used for other
  content. In a simulation nonces follow from seed, settings and data: the same job is repeated with
  the same bytes.
"""
