"""Computes the expected values of tests/all/scipy_agreement.rs with SciPy.

    pip install scipy
    python3 make_expected.py > expected.json

Data are drawn once from NumPy's generator with a fixed seed and rounded, so the file is the same every time.
"""

import json
import sys

import numpy as np
import scipy
from scipy import special, stats

rng = np.random.default_rng(20251122)


def draw(n, shift, kind):
    if kind == "normal":
        v = rng.normal(100 + shift, 5, n)
    elif kind == "skewed":
        v = 50 + shift + rng.lognormal(2, 0.8, n)
    else:  # coarse values with ties
        v = rng.integers(1, 8, n) + shift
    return [round(float(x), 3) for x in v]


def bca(values):
    """BCa with so many resamples that its own noise is far below ours."""
    r = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=200_000, batch=5_000,
                        confidence_level=0.95, rng=np.random.default_rng(1))
    return [float(r.confidence_interval.low), float(r.confidence_interval.high)]


def welch(kind, n, m, shift):
    """Welch's t on logarithms, with the interval of the ratio."""
    x, y = draw(n, 0, kind), draw(m, shift, kind)
    a, b = np.log(x), np.log(y)
    va, vb = np.var(a, ddof=1) / n, np.var(b, ddof=1) / m
    df = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
    half = stats.t.ppf(0.975, df) * np.sqrt(va + vb)
    d = np.mean(b) - np.mean(a)
    return {"x": x, "y": y, "p": float(stats.ttest_ind(a, b, equal_var=False).pvalue),
            "low": float(np.exp(d - half)), "high": float(np.exp(d + half))}


def case(kind, n, m, shift):
    x, y = draw(n, 0, kind), draw(m, shift, kind)
    exact = stats.mannwhitneyu(x, y, method="exact")
    normal = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=True)
    out = {
        "kind": kind, "x": x, "y": y,
        "mean": float(np.mean(x)), "median": float(np.median(x)), "sd": float(np.std(x, ddof=1)),
        "se": float(stats.sem(x)),
        "t": [float(v) for v in stats.t.interval(0.95, n - 1, np.mean(x), stats.sem(x))],
        "u": float(exact.statistic), "p_exact": float(exact.pvalue), "p_normal": float(normal.pvalue),
        "delta": float(2 * exact.statistic / (n * m) - 1),
    }
    if n >= 5:
        out["bca"] = bca(x)
    return out


cases = [case(kind, n, m, shift)
         for kind in ("normal", "skewed", "ties")
         for n, m, shift in ((3, 3, 9), (4, 4, 3), (5, 5, 2), (6, 6, 1), (7, 6, 4), (10, 10, 0), (20, 15, 2))]
p = [[0.01, 0.04, 0.03], [0.2, 0.001, 0.05, 0.05, 0.9], [0.5]]


def benjamini_hochberg(p):
    """As scipy.stats.false_discovery_control of SciPy 1.11 and later."""
    order = np.argsort(p, kind="stable")[::-1]
    k = len(p) - np.arange(len(p))
    adjusted = np.minimum.accumulate(np.minimum(1, np.array(p)[order] * len(p) / k))
    out = np.empty(len(p))
    out[order] = adjusted
    return out.tolist()


# After everything else, so that the numbers drawn above stay what they were.
welches = [welch(kind, n, m, shift)
           for kind in ("normal", "skewed")
           for n, m, shift in ((2, 2, 30), (3, 5, 9), (5, 5, 2), (10, 10, 8), (20, 15, 0))]

json.dump({
    "scipy": scipy.__version__,
    "cases": cases,
    "normal_cdf": [[z, float(stats.norm.cdf(z))] for z in (-8, -5, -3, -1.96, -0.5, 0, 0.3, 1, 2.5, 6)],
    "normal_quantile": [[q, float(stats.norm.ppf(q))] for q in (1e-9, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.9999)],
    "t_cdf": [[t, df, float(stats.t.cdf(t, df))] for t in (-4, -1, 0, 0.7, 2.5, 30) for df in (1, 2, 5, 29, 400)],
    "t_quantile": [[q, df, float(stats.t.ppf(q, df))] for q in (0.01, 0.4, 0.9, 0.975, 0.9995) for df in (1, 2, 5, 29, 400)],
    "benjamini_hochberg": [[v, benjamini_hochberg(v)] for v in p],
    "welch": welches,
    "digamma": [[x, float(special.digamma(x))] for x in (0.5, 1, 1.5, 2, 4.5, 9, 300)],
    "trigamma": [[x, float(special.polygamma(1, x))] for x in (0.5, 1, 1.5, 2, 4.5, 9, 300)],
}, sys.stdout, indent=1)
print()
