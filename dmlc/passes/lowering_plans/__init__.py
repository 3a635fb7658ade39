"""The lowerings that a target with a cost model chooses from."""
