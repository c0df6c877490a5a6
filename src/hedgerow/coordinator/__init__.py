"""Whoever drives a run. Every noisy release passes the gate; sessions have none (`sessions.py`).

gate.py        release, select and publish; the charge comes first
federation.py  the parties as one thing that sums, written once over any engine
driving.py     what a federation offers whoever drives runs over it
transport.py   signed messages to parties, and their checked replies
refused.py     parties that refuse or do not answer, as the driver of a run is told of it
witnesses.py   carries what parties show and leave each other of their ledgers
presence.py    who joined a run, and who failed in it
sessions.py    sessions in which parties send each other sealed messages
traffic.py     rounds and bytes of a plan, known beforehand
"""
