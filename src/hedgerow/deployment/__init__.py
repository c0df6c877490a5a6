"""Running a site of a federation: what its operator starts, sees and decides.

process.py       the party's long-lived process, with rows, key and ledger
coordinator.py   the coordinator's long-lived process, with the port that parties dial
driving.py       a coordinator's federation opened in Python; fits that go on after an interruption
sandbox.py       the kernel keeps a party's process to its site folder (Landlock)
watching.py      files that a person changes while a process runs
hold.py          one process at a time works for a site
start.py         what a party was started with, remembered in its site folder
status.py        what a party was asked, what it cost, what is left, what waits
console/         pages for the operator and the privacy officer, and for monitoring
terminal.py      what the process shows on its terminal
logs.py          dated, rotated logs of a site's processes
approvals.py     plans that wait for a person, and plans in words
accounts.py      people of a site, their roles, and how they sign in
site_service.py  questions at a site's console socket: sessions and roles
service.py       what the party's process answers at its sockets; checks who may decide
limits_file.py   limits.toml, read, checked and written
roster.py        from cards to the roster that every site pins
runs.py          the coordinator's list of runs
ledger_head.py   a note of where the ledger ended, so that an older copy is noticed
method_kinds.py  which kinds of queries a method can ask
roles.py         what a party can do with others without an epsilon, by name
store.py         what a site keeps of such sessions
warming.py       compiles loops before they are needed
trial.py         a whole federation on one machine, with real keys and processes
"""
