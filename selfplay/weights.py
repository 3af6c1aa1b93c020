"""Networks in the form in which the learner sends them to the actors."""

from dataclasses import dataclass

import safetensors.torch

from learner.network import Network, NetworkConfig, make_network


@dataclass(frozen=True)
class Weights:
    """A network to send to actors: the bytes of a safetensors file, and a digest for the game records."""

    config: NetworkConfig
    data: bytes
    digest: str

    @staticmethod
    def of(network: Network, digest: str) -> "Weights":
        # Copies, because safetensors refuses tensors that share memory, as those of a layer that is used twice do.
        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
        return Weights(network.config, safetensors.torch.save(tensors), digest)

    def network(self) -> Network:
        """Makes the network, in evaluation mode."""
        network = make_network(self.config).eval()
        network.set_weights(safetensors.torch.load(self.data))
        return network
