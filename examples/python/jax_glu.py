# SPDX-License-Identifier: Apache-2.0
"""A gated MLP in JAX with the gated projection as one call: under jit, mapped over a batch, differentiated."""

import jax
import jax.numpy as jnp

import tileglu.jax

hidden, intermediate = 256, 1024
keys = jax.random.split(jax.random.key(0), 4)
shapes = {"gate": (intermediate, hidden), "up": (intermediate, hidden), "down": (hidden, intermediate)}
weights = {name: jax.random.normal(key, shape) / shape[1] ** 0.5 for key, (name, shape) in zip(keys, shapes.items())}


def mlp(weights, x):
    return tileglu.jax.glu(x, weights["gate"], weights["up"]) @ weights["down"].T


def plain(weights, x):
    return (jax.nn.silu(x @ weights["gate"].T) * (x @ weights["up"].T)) @ weights["down"].T


x = jax.random.normal(keys[3], (4, 16, hidden))
print("against plain JAX:", jnp.abs(jax.jit(mlp)(weights, x) - plain(weights, x)).max())
mapped = jax.vmap(mlp, in_axes=(None, 0))  # one call on 4 * 16 rows
print("mapped over the batch:", mapped(weights, x).shape)
gradient = jax.grad(lambda w: mlp(w, x).sum())(weights)
print("gradients:", {name: array.shape for name, array in gradient.items()})
