"""Readers of models: one package a format, blind to each other, each with a table of translations onto the primitives.

Takes a model file and the caller's word on its inputs → gives a Graph.
Nobody else reads models. Must not optimize: a translation says what an op means, passes make it fast.
"""
