"""Kalman filter, steady state, smoother and Durbin–Levinson recursion for the latent AR model."""
