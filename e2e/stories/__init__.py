"""The stories: what users do with Cuvil on a real cluster, and what must come of it.

Holds: one module a story, and the stage they share (world, access, load, Prometheus, timeline, replay, killer).
Takes a World, a prepared cluster; gives facts to print, or raises StoryError. Must not import product rooms but those
that replay a decision (`cuvil_operator.decide`), and must not patch anything.
"""
