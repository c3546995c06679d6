"""What can be asked: each kind of question knows its randomizers, its columns, its estimates.

One file a kind. Planning and running are the same for all of them (`collection/plan.py`,
`collection/run.py`), and reach what differs through the `Question` Protocol.
"""
