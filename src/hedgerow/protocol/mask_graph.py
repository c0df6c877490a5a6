"""The graph of masks: with which others of a sum a party shares a stream.

The parties of a sum stand on a circle, in their order. Each shares a stream with the `degree / 2`
next ones on either side: a Harary graph, which stays connected whichever `degree - 1` parties are
taken out, and no graph with as few edges does better. It follows from the ordered set and from the
roster's c alone. Nothing in it is drawn, so a coordinator has nothing to try again until it likes
the outcome; and whichever set it picks, c parties are too few to surround anybody.

Claim. Let c parties of a sum collude with the coordinator, and let the others stay connected when
the c are taken out. Whoever sees all masked messages and knows all streams of the c learns of the
other messages their total modulo 2**64, and nothing else: given that total, they are uniform.

Proof. Let H be the others and E the edges between them; q = 2**64, one coordinate. Streams of the
edges in E are independent and uniform on Z_q (each is the output of ChaCha20 under a key of its
own, that the pair alone can derive), and unknown to the c. Take known streams out of the messages
of H: what is left of party u is x_u + sum over edges e in E at u of +-s_e, where the two ends of
an edge have opposite signs. These masks are the image of s under the homomorphism d from Z_q^E to
Z_q^H that sends an edge's unit to [u] - [v]. A homomorphism takes uniform to uniform on its image.
Every [u] - [v] is in the image, for u and v not neighbours too: add the edges of a path from u to
v, which exists because H is connected. These differences generate all vectors whose entries add up
to 0, and no others are in the image. So the masks of H are uniform among vectors with sum 0, and
the masked messages uniform among vectors whose sum is that of x.  (q.e.d.)

Connectivity. Let fewer than 2m parties be taken out of a circle of n > 2m + 1 in which everyone
reaches the m next ones on either side, and let u and v remain. Of the two arcs between them, one
has no m neighbouring parties taken out, because the arcs have no party in common and both together
would have lost 2m. On that arc walk from u to v: among the next m places there is always one that
remains, or v. With n <= 2m + 1 everybody is everybody's neighbour.
"""

from __future__ import annotations

# Above what c asks for. One party more than that could read the message of its neighbour, with a
# noise share of sigma^2 / (S - c) that hides nothing, while the noise of the whole sum would have
# lost one share of many: masks must not be the first to give way. Sixteen streams take a party
# less than drawing its noise.
LEAST_DEGREE = 16


def degree(n_parties: int, colluding: int) -> int:
    """How many neighbours each of so many parties has: everybody, while parties are few.

    At least twice as many as c + 1, which connectivity needs; an even number where it is not all.

    >>> degree(3, 1), degree(17, 1), degree(1000, 1), degree(1000, 20)
    (2, 16, 16, 42)
    """
    return min(n_parties - 1, max(LEAST_DEGREE, 2 * (colluding + 1)))


def neighbours(place: int, n_parties: int, degree: int) -> list[int]:
    """Places of those that the party at a place shares a stream with.

    >>> neighbours(0, 7, 4), neighbours(1, 3, 4)
    ([5, 6, 1, 2], [0, 2])
    """
    half = (degree + 1) // 2
    if n_parties <= 2 * half + 1:
        return [other for other in range(n_parties) if other != place]
    steps = (*range(-half, 0), *range(1, half + 1))
    return [(place + step) % n_parties for step in steps]
