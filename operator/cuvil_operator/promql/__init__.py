"""The words of Prometheus: query texts, what answers mean, recording and alerting rules.

Holds: queries of cumulative counters per pod, the reading of instant vectors into whole counts, the rule groups of an
SLO. Takes names, thresholds and series, gives text and frozen readings. Must not reach the network, know phases, or
judge a canary.
"""

from cuvil_operator.promql.reading import PodCounts, Reading, SourceState

__all__ = ["PodCounts", "Reading", "SourceState"]
