"""The controller: from CuvilModel resources to compiled, proved, watched and, where need be, rolled-back rollouts.

Holds: one room a concern (see docs/architecture.md): api, facts, decide, promql, render, gateways, observe, act, status.
Takes events and a resync → gives applied objects, Events, metrics and one status a turn.
Must not import the compiler: only `cuvil_core.contract` crosses.
"""
