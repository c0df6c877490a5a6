"""What travels between coordinator and parties, and the cryptography around it.

messages.py       messages: versioned, length-checked, signed; the list of reasons to refuse
replies.py        what a party replies, sealed and signed once it travels
identity.py       signing keys, the roster, signed announcements
masks.py          secure aggregation: masks that cancel in the total; encryption of replies
mask_graph.py     with which others a party shares a mask, and the proof of what that hides
joined.py         announcements that a run was joined with, and the sets that are summed of them
handshake.py      how a run or a session is opened: announcements of keys, never an older one
witnesses.py      heads of ledgers, as parties leave them with each other and show them again
roles.py          sessions between parties: agreement, steps, roles
session_steps.py  one step of a session as messages, sealed or handed over
peer_messages.py  one message between parties, as it was read
engine.py         what an engine is
"""
