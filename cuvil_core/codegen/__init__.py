"""Source text from Programs and kernels, one package a target language.

Holds: `c`; `triton` later. Siblings are blind to each other.
Takes frozen Programs, kernels and schedules → gives strings.
Must not touch files, run processes, or decide anything: schedules already did.
"""
