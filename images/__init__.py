"""Container images of the compiler, the runtime and the operator.

Holds: one Dockerfile and one list of packages an image, `keep_rooms` (what of the product an image needs), `base` (a
Debian base made by debootstrap) and `build` (the command that makes, tags and pushes them by content).
Takes: this tree, a base image, a registry → gives: image references with digests.
Must not: hold an index address, a certificate or anything else of the machine that builds.
"""
