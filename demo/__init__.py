"""The demonstration: four stories on a real cluster, told on the terminal and in a page with plots.

Takes a prepared World of `e2e.stories`; gives `demo/report.html`. Must not decide or patch anything.
"""
