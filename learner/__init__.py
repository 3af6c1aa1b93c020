"""The network and how it learns: model, loss, training step, checkpoints and batched inference. No processes."""
