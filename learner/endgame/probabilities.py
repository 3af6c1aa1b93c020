"""Probabilities of win, draw and loss: from logits, back to logarithms, and bounded."""

import numpy as np


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Probabilities float32 [N, 3] of logits divided by a temperature."""
    shares = np.exp((logits - logits.max(1, keepdims=True)) / np.float32(temperature), dtype=np.float32)
    return shares / shares.sum(1, keepdims=True)


def log_probabilities(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms float32 [N, 3] of probabilities, none below -69."""
    return np.log(np.maximum(probabilities, np.float32(1e-30)))


def bounded(probabilities: np.ndarray, most: float) -> np.ndarray:
    """Probabilities float32 [N, 3], each row moved as far towards a third each as leaves none larger than ``most``."""
    third, largest = 1 / 3, probabilities.max(1, keepdims=True).astype(np.float64)
    weights = np.minimum(1.0, (max(most, third) - third) / np.maximum(largest - third, 1e-9)).astype(np.float32)
    return weights * probabilities + (1 - weights) * np.float32(third)
