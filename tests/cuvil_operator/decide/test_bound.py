"""The anytime-valid bound: its arithmetic against exact sums, its behaviour at the edges, its promise by simulation."""

import math
import random

import pytest

from cuvil_operator.decide import bound


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(at least k of n) summed term by term: equals I_p(k, n − k + 1)."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(1, 1, 0.5), (3, 50, 0.05), (10, 30, 0.5), (1, 1000, 0.005), (29, 30, 0.1), (500, 1000, 0.5), (2, 900, 0.3)],
)
def test_incomplete_beta_equals_the_binomial_tail(k: int, n: int, p: float) -> None:
    """log(1 − I) and log I agree with a sum over all outcomes to ten digits."""
    upper = math.exp(bound.log_upper(1 - p, n - k + 1, k))
    assert upper == pytest.approx(binomial_tail(k, n, p), rel=1e-10)


def test_incomplete_beta_in_closed_form() -> None:
    """I_x(1, b) = 1 − (1 − x)^b, and a far tail keeps its digits as a logarithm."""
    assert bound.log_upper(0.05, 1, 4) == pytest.approx(4 * math.log(0.95), rel=1e-12)
    assert bound.log_upper(0.9, 1, 10_000) == pytest.approx(10_000 * math.log(0.1), rel=1e-12)


def mixture_by_quadrature(breaches: int, requests: int, limit: float) -> float:
    """The definition: the mean likelihood ratio over the cut-off prior, by the midpoint rule."""
    b = bound._prior_b(limit)
    cells = 200_000
    shares = [limit + (1 - limit) * (i + 0.5) / cells for i in range(cells)]
    prior = [(1 - q) ** (b - 1) for q in shares]
    good = requests - breaches
    ratios = [math.exp(breaches * math.log(q / limit) + good * math.log((1 - q) / (1 - limit))) for q in shares]
    return math.fsum(w * r for w, r in zip(prior, ratios, strict=True)) / math.fsum(prior)


@pytest.mark.parametrize(("breaches", "requests", "limit"), [(10, 30, 0.05), (0, 40, 0.05), (4, 100, 0.01)])
def test_evidence_is_the_mixture_it_is_defined_as(breaches: int, requests: int, limit: float) -> None:
    """The closed form equals the integral of its definition."""
    expected = math.log(mixture_by_quadrature(breaches, requests, limit))
    assert bound.log_evidence(breaches, requests, limit) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("limit", [0.005, 0.05, 0.5])
def test_one_request_never_raises_the_mean_evidence(limit: float) -> None:
    """At any true share up to the limit the evidence is a supermartingale: one more request lowers it on average."""
    for breaches, requests in [(0, 0), (1, 5), (5, 60), (40, 400)]:
        now = math.exp(bound.log_evidence(breaches, requests, limit))
        bad = math.exp(bound.log_evidence(breaches + 1, requests + 1, limit))
        good = math.exp(bound.log_evidence(breaches, requests + 1, limit))
        for share in (limit, limit / 2, limit / 10):
            assert share * bad + (1 - share) * good <= now * (1 + 1e-9)
        assert limit * bad + (1 - limit) * good == pytest.approx(now, rel=1e-9)


def test_no_requests_are_no_evidence() -> None:
    """Nothing seen refutes nothing."""
    assert bound.log_evidence(0, 0, 0.01) == 0
    assert not bound.refuted(0, 0, 0.01, 0.005)
    assert bound.lower_bound(0, 0, 0.005) == 0


def test_limits_of_zero_and_alphas_of_zero() -> None:
    """A limit of 0 is refuted by one breach; an alpha of 0 refutes nothing."""
    assert bound.refuted(1, 10_000, 0, 0.01) and not bound.refuted(0, 10_000, 0, 0.01)
    assert not bound.refuted(100, 100, 0.01, 0)


def test_the_bound_says_what_the_test_says() -> None:
    """The lower bound lies above the limit exactly when the limit is refuted, and never above the seen share."""
    for breaches, requests in [(3, 30), (7, 30), (10, 30), (40, 400), (60, 400), (5000, 1_000_000)]:
        low = bound.lower_bound(breaches, requests, 0.005)
        assert 0 <= low <= breaches / requests
        for limit in (0.001, 0.005, 0.01, 0.05, 0.1):
            if abs(limit - low) > 1e-5:
                assert (low > limit) is bound.refuted(breaches, requests, limit, 0.005)


def test_a_healthy_canary_is_rarely_refuted_however_often_one_looks() -> None:
    """At the limit, with a look after every request, at most alpha of the runs are refuted (400 runs, 3 sigma)."""
    limit, alpha, runs, length = 0.05, 0.05, 400, 1500
    fails = first_refuting(limit, alpha, length)
    dice = random.Random(7)
    false = 0
    for _ in range(runs):
        breaches = 0
        for requests in range(1, length + 1):
            breaches += dice.random() < limit
            if breaches >= fails[requests]:
                false += 1
                break
    assert false <= runs * alpha + 3 * math.sqrt(runs * alpha * (1 - alpha))


def first_refuting(limit: float, alpha: float, length: int) -> list[int]:
    """Give for each number of requests the least number of breaches that refutes."""
    least, found = 1, [1]
    for requests in range(1, length + 1):
        while least <= requests and not bound.refuted(least, requests, limit, alpha):
            least += 1
        found.append(least)
    return found
