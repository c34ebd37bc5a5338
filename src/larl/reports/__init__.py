"""Reports of simulations: the reproduction of the paper, and the evaluation of Auto."""
