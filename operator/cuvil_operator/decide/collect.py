"""What nobody needs any more.

    Jobs        whose result is in status or in a revision's ConfigMap, whose key no longer follows from the spec, or
                whose revision is quarantined; one that other CuvilModels own is left to them
    workloads   of revisions that are neither stable nor canary
    ConfigMaps  of revisions that are not live, not wanted, not in history and without a workload

While the model's digest is not known nothing is known to be unneeded, and nothing is collected.
"""

from cuvil_operator.conventions import Stage
from cuvil_operator.decide import hashing, proof
from cuvil_operator.decide.wanted import Wanted
from cuvil_operator.facts import (
    Action,
    DeleteJob,
    DeleteRevision,
    DeleteWorkload,
    DisownJob,
    JobSeen,
    Observed,
)


def leftovers(seen: Observed, wanted: Wanted | None) -> tuple[Action, ...]:
    """Give the acts that remove what is not needed; never what is live or in history."""
    if wanted is None:
        return ()
    live = _live(seen)
    kept = live | {wanted.revision} | {one.revision for one in seen.status.history}
    kept |= {one.revision for one in seen.workloads}
    acts: list[Action] = [release(seen, job) for job in seen.jobs if not job.deleting and _idle(seen, wanted, job)]
    acts += [DeleteWorkload(one.revision) for one in seen.workloads if one.revision not in live]
    acts += [DeleteRevision(one.revision) for one in seen.records if one.revision not in kept]
    return tuple(acts)


def release(seen: Observed, job: JobSeen) -> Action:
    """Give up a Job: delete it, or only step out of its owners where others remain."""
    others = [one for one in job.owners if one != seen.uid]
    return DisownJob(job.name, job.uid) if others else DeleteJob(job.name, job.uid)


def _live(seen: Observed) -> set[str]:
    return {one.revision for one in (seen.status.stable, seen.status.canary) if one}


def _idle(seen: Observed, wanted: Wanted, job: JobSeen) -> bool:
    if seen.uid not in job.owners:
        return False
    if job.stage is Stage.RESOLVE:
        return seen.spec is None or seen.spec.model.sha256 is not None or _stale_resolve(seen, job) or _resolved(seen)
    if wanted.record is not None or _refused(seen, wanted):
        return True
    # a failed Job stays while its key is wanted: it is the memory of the failure
    if job.stage is Stage.COMPILE:
        return job.key != wanted.compile_key
    made = proof.artifact(seen, wanted)
    return seen.spec is None or made is None or job.key != proof.validation_key(seen, seen.spec, wanted, made)


def _refused(seen: Observed, wanted: Wanted) -> bool:
    """A quarantined revision needs no Jobs. One refused only for its artifact keeps them: they tell the artifact."""
    return any(one.revision == wanted.revision for one in seen.status.quarantine)


def _resolved(seen: Observed) -> bool:
    return seen.status.resolved_generation == seen.generation


def _stale_resolve(seen: Observed, job: JobSeen) -> bool:
    return seen.spec is not None and job.key != hashing.resolve_key(seen.spec, seen.generation)
