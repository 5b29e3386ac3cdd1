"""The machinery round `reconcile`: which key is next, how often, and whether the watches still live.

Holds: the de-duplicating queue, the workers with their backoff, the bookkeeping that proves watches alive, the resync.
Takes keys from events and lists → calls reconcile once a key at a time, several keys at once.
Must not know what a reconcile does.
"""
