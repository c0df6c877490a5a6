"""Noise. `mechanisms.py` alone draws it; the samplers behind it are called by nobody else.

mechanisms.py         THE ONLY place that draws noise
discrete_gaussian.py  exact discrete Gaussians, compiled
bernoulli.py          exact Bernoulli, uniform and geometric draws, discrete Laplaces
randomisers.py        local randomisers of single values and labels: the rules, not the draws
poisson_sampling.py   which rows take part in a round, secretly
secret_randomness.py  cryptographic randomness that is not noise
"""
