"""The controller: from CuvilModel resources to compiled, proved, watched and, where need be, rolled-back rollouts.

Holds: one room a concern: api, facts, decide, promql, render, gateways, observe, act, status, control, election.
Takes events and a resync → gives applied objects, Events, metrics and one status a turn.
Must not import the compiler: only `cuvil_core.contract` crosses.
"""
