"""Networks in the form in which the learner sends them to the actors."""

from dataclasses import dataclass

import safetensors.torch

from learner.checkpoint import weights_of
from learner.network import Network, NetworkConfig, make_network


@dataclass(frozen=True)
class Weights:
    """A network to send to actors: the bytes of a safetensors file, and a digest for the game records."""

    config: NetworkConfig
    data: bytes
    digest: str

    @staticmethod
    def of(network: Network, digest: str) -> "Weights":
        return Weights(network.config, weights_of(network), digest)

    def network(self) -> Network:
        """Makes the network, in evaluation mode."""
        network = make_network(self.config).eval()
        network.set_weights(safetensors.torch.load(self.data))
        return network
