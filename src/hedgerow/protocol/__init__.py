"""What travels between coordinator and parties, and the cryptography around it.

messages.py       messages: versioned, length-checked, signed; words of refusal
replies.py        what a party replies, sealed and signed once it travels
identity.py       signing keys, the roster, signed announcements
masks.py          secure aggregation: streams that cancel in the total; seals
mask_keys.py      the other parties' mask keys, never an older one
roles.py          sessions between parties: agreement, steps, roles
peer_messages.py  one message between parties, as it was read
engine.py         what an engine is
"""
