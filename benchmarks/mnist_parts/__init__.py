"""Parts of the benchmark of private training on MNIST."""
