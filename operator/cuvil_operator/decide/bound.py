"""The one-sided anytime-valid bound on a share: a beta-binomial mixture martingale.

k breaches in n requests, null hypothesis p ≤ p0. For one alternative q > p0 the likelihood ratio

    (q/p0)^k · ((1 − q)/(1 − p0))^(n − k)

is a supermartingale under every p ≤ p0: its expected factor per request is linear and rising in p, and 1 at p = p0. So
is its mixture over a prior on (p0, 1]. The prior is Beta(a, b) cut off below p0, which has the closed form

    E = [B(a + k, b + n − k) · S(a + k, b + n − k)] / [B(a, b) · S(a, b) · p0^k · (1 − p0)^(n − k)]

with S(a, b) = 1 − I_p0(a, b), the mass above p0. By Ville's inequality P(E ever reaches 1/α) ≤ α, however often one
looks and whenever one stops. The lower confidence bound is the largest p0 that is still refuted.

Prior: a = 1, mean SPREAD · p0: most of it between the limit and ten times the limit, where rollbacks are decided.
Worked example: p0 = 0.05, α = 0.005, 10 breaches in 30 requests: log E = 10.7 > log 200 = 5.3, so refuted.

Sources: Robbins, "Statistical methods related to the law of the iterated logarithm" (1970), method of mixtures; Ville
(1939); Howard et al., arXiv:1810.08240, section 4. The difference: the prior is cut off at p0 for the composite null.
"""

from math import exp, inf, lgamma, log, log1p

PRIOR_A = 1.0
SPREAD = 4.0
"""Mean of the prior in units of the limit."""
_TINY = 1e-300
_PRECISION = 1e-14
_LONGEST_FRACTION = 100_000


def log_evidence(breaches: int, requests: int, limit: float) -> float:
    """Give log E against "the true share is at most `limit`"; 0 where there is no evidence, inf where limit is 0.

    0 ≤ breaches ≤ requests; 0 ≤ limit < 1.
    """
    if requests == 0:
        return 0.0
    if limit <= 0:
        return inf if breaches else 0.0
    a, b = PRIOR_A, _prior_b(limit)
    good = requests - breaches
    posterior = _log_beta(a + breaches, b + good) + log_upper(limit, a + breaches, b + good)
    prior = _log_beta(a, b) + log_upper(limit, a, b)
    return posterior - prior - breaches * log(limit) - good * log1p(-limit)


def refuted(breaches: int, requests: int, limit: float, alpha: float) -> bool:
    """True once "the share is at most `limit`" is refuted at chance `alpha` of an error over the whole watch."""
    return alpha > 0 and log_evidence(breaches, requests, limit) >= -log(alpha)


def lower_bound(breaches: int, requests: int, alpha: float) -> float:
    """Give the largest refuted share, found by halving to 1e-7; 0 where nothing is refuted."""
    if not breaches or alpha <= 0:
        return 0.0
    low, high = 0.0, breaches / requests
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(breaches, requests, middle, alpha) else (low, middle)
    return low


def log_upper(x: float, a: float, b: float) -> float:
    """Give log(1 − I_x(a, b)), the log of a Beta(a, b) variable's chance to exceed x; 0 < x < 1; a, b > 0."""
    return _log_lower(1.0 - x, b, a)


def _prior_b(limit: float) -> float:
    mean = min(SPREAD * limit, (1.0 + limit) / 2)
    return PRIOR_A * (1.0 - mean) / mean


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _log_lower(x: float, a: float, b: float) -> float:
    # the fraction converges fast below the mean only; above it the other tail is computed and subtracted from 1
    if x > (a + 1.0) / (a + b + 2.0):
        other = _log_lower_by_fraction(1.0 - x, b, a)
        return log1p(-exp(other)) if other < 0 else -inf
    return _log_lower_by_fraction(x, a, b)


def _log_lower_by_fraction(x: float, a: float, b: float) -> float:
    """log I_x(a, b) by the continued fraction DLMF 8.17.22, evaluated by the modified Lentz method."""
    c, d = 1.0, _safe(1.0 - (a + b) * x / (a + 1.0))
    d = 1.0 / d
    fraction = d
    for m in range(1, _LONGEST_FRACTION):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1.0 / _safe(1.0 + term * d)
            c = _safe(1.0 + term / c)
            change = c * d
            fraction *= change
        if abs(change - 1.0) < _PRECISION:
            break
    return a * log(x) + b * log1p(-x) - log(a) - _log_beta(a, b) + log(fraction)


def _safe(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
