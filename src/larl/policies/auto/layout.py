"""Memory layout of a block of particles: an array (rows, LANES) with one column per particle.

Each row holds one number of every particle in the block (structure of arrays). The layout depends on the number of arms
and on the model.
"""

from typing import NamedTuple

from larl._core.compile import inline, kernel

# The forms that a model can have: see particle_kalman.py. STATIONARY_AR is AR_STATE from a stationary start.
AR_STATE, INDEPENDENT_AR1, DAMPED_ROTATION, STATIONARY_AR = 0, 1, 2, 3
CONTINUOUS, BINARY = 0, 1  # observation models of the rewards


class ModelKind(NamedTuple):
    """The model that all particles of a population share."""

    arms: int
    p: int  # AR order; 1 for INDEPENDENT_AR1, 2 for DAMPED_ROTATION
    form: int  # AR_STATE, INDEPENDENT_AR1, DAMPED_ROTATION or STATIONARY_AR
    rewards: int  # CONTINUOUS or BINARY
    contexts: int = 0  # length of the context


class FieldOffsets(NamedTuple):
    """The first row of each field in a block."""

    theta: int  # coordinates, defined in parameters.py
    sign: int  # (arms) ±1, the sign of β
    phi: int  # (p) AR coefficients, or ρ cos ω and ρ sin ω
    beta: int  # (arms) loading on the state
    kappa: int  # (arms) loading on the second coordinate of a DAMPED_ROTATION
    autocorrelation: int  # (p) of z at lags 0 … p − 1 (STATIONARY_AR)
    noise_variance: int  # (arms) of the rewards
    start_variance: int  # of the state at the start
    level_variance: int  # of the arms' levels
    persistence: int  # one-step autocorrelation of the levels (INDEPENDENT_AR1)
    effect_variance: int  # (contexts) prior variance of the effects of each number, common and of each arm
    mean: int  # (arms + effects + p) of the belief
    cov: int  # (triangle of arms + effects + p) of the belief, packed
    log_det: int  # Σ log S over the observed rewards, S the variance of the prediction error; BINARY: −2 log-likelihood
    squared_error: int  # Σ e²/S, e the prediction error
    window_start: int  # copy of mean … squared_error at the first step that can be replayed
    log_lik_before: int  # log-likelihood without the last reward
    log_lik: int  # log-likelihood with it
    log_weight: int
    tmp1: int  # from here on all rows are scratch
    tmp2: int
    tmp3: int
    work: int  # (arms + effects + p)
    end: int


@inline
def first_state(kind: ModelKind) -> int:
    """Return the index of the latent state in a belief: after the arms' levels and the effects of contexts."""
    return kind.arms * (1 + kind.contexts)


@inline
def effect_index(kind: ModelKind, arm: int, number: int) -> int:
    """Return the index of the effect of a number of the context on an arm in a belief."""
    return kind.arms + arm * kind.contexts + number


@kernel
def coordinate_count(kind: ModelKind) -> int:
    """Return the number of coordinates of a particle."""
    extra = 1 if kind.form == INDEPENDENT_AR1 else kind.arms if kind.form == DAMPED_ROTATION else 0
    return kind.p + kind.arms + 4 + extra + kind.contexts


@kernel
def field_offsets(kind: ModelKind) -> FieldOffsets:
    """Return the layout for particles of one model."""
    arms, size = kind.arms, kind.arms * (1 + kind.contexts) + kind.p
    sign = coordinate_count(kind)
    phi = sign + arms
    beta = phi + kind.p
    kappa = beta + arms
    autocorrelation = kappa + (arms if kind.form == DAMPED_ROTATION else 0)
    noise = autocorrelation + (kind.p if kind.form == STATIONARY_AR else 0)
    start = noise + arms
    effects = start + 3
    mean = effects + kind.contexts
    cov = mean + size
    log_det = cov + (size * (size + 1) >> 1)
    window = log_det + 2
    before = window + window - mean
    return FieldOffsets(
        0,
        sign,
        phi,
        beta,
        kappa,
        autocorrelation,
        noise,
        start,
        start + 1,
        start + 2,
        effects,
        mean,
        cov,
        log_det,
        log_det + 1,
        window,
        before,
        before + 1,
        before + 2,
        before + 3,
        before + 4,
        before + 5,
        before + 6,
        before + 6 + size,
    )


@inline
def cov_index(i: int, j: int) -> int:
    """Return the row, counted from `cov`, of element (i, j) of a packed symmetric matrix."""
    high, low = max(i, j), min(i, j)
    return (high * (high + 1) >> 1) + low
