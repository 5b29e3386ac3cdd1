"""Speed, size and exactness beside the peers: data, never assertions.

Holds: the models and shapes measured, one worker process a contender, and the table that `make bench` prints.
Takes model files; gives ratios of p10 latencies, measured in turn in one run. Must not be imported by the product.
"""
