"""The workloads in PyTorch.

Modes: eager; "eager, fused" (Adam with fused=True); "eager, sdpa" (W7 with its attention kernel); "eager,
channels last" (W5); compile (inductor for the model, fused Adam).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case, repeat

from workloads import data
from workloads.data import BATCH, HEADS, SEQUENCE, WIDTH


def mlp(torch: Any, weights: Any, x: Any, activation: Any) -> Any:
    layers = (len(weights) + 1) // 2
    for k in range(layers):
        if 2 * k + 1 == len(weights):
            x = x @ weights[2 * k]
        elif x.dim() == 1:
            x = x @ weights[2 * k] + weights[2 * k + 1]
        else:
            x = torch.addmm(weights[2 * k + 1], x, weights[2 * k])
        if k < layers - 1:
            x = activation(x)
    return x


def _block(torch: Any, x: Any, weights: Any, sdpa: bool) -> Any:
    F = torch.nn.functional
    g1, b1, w_qkv, b_qkv, w_out, b_out, g2, b2, w_up, b_up, w_down, b_down = weights
    rows, each = BATCH * SEQUENCE, WIDTH // HEADS
    h = F.layer_norm(x, (WIDTH,), g1, b1).reshape(rows, WIDTH)
    qkv = torch.addmm(b_qkv, h, w_qkv).reshape(BATCH, SEQUENCE, 3, HEADS, each)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    if sdpa:
        o = F.scaled_dot_product_attention(q, k, v)
    else:
        o = F.softmax(q @ k.transpose(-1, -2) * each**-0.5, -1) @ v
    o = o.transpose(1, 2).reshape(rows, WIDTH)
    x = x + torch.addmm(b_out, o, w_out).reshape(BATCH, SEQUENCE, WIDTH)
    h = F.layer_norm(x, (WIDTH,), g2, b2).reshape(rows, WIDTH)
    h = torch.addmm(b_down, F.gelu(torch.addmm(b_up, h, w_up)), w_down)
    return x + h.reshape(BATCH, SEQUENCE, WIDTH)


def _loss(torch: Any, name: str, mode: str) -> Callable[..., Any]:
    F = torch.nn.functional

    def cnn(w: Any, x: Any, y: Any) -> Any:
        for k in (0, 2):
            x = F.max_pool2d(torch.relu(F.conv2d(x, w[k], w[k + 1], padding=1)), 2)
        return F.cross_entropy(mlp(torch, w[4:], x.reshape(64, 3136), torch.relu), y)

    def lstm(w: Any, x: Any, y: Any) -> Any:
        wx, wh, bias = w
        h = c = torch.zeros(32, 128)
        for row in x.unbind(0):
            i, f, g, o = (row @ wx + h @ wh + bias).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.mse_loss(h, y)

    def transformer(w: Any, x: Any) -> Any:
        for k in range(0, len(w), 12):
            x = _block(torch, x, w[k : k + 12], mode == "eager, sdpa")
        return x.square().mean()

    def pinn(w: Any, x: Any, t: Any) -> Any:
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = mlp(torch, w, torch.cat([x, t], 1), torch.tanh)
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (uxx,) = torch.autograd.grad(ux.sum(), x, create_graph=True)
        return (ut - uxx).square().mean()

    def pinn_compiled(w: Any, x: Any, t: Any) -> Any:
        """The same with torch.func: torch.compile does not support nested autograd.grad."""
        grad = torch.func.grad

        def total(x: Any, t: Any) -> Any:
            return mlp(torch, w, torch.cat([x, t], 1), torch.tanh).sum()

        def slopes(x: Any) -> Any:
            ux, ut = grad(total, (0, 1))(x, t)
            return ux.sum(), ut

        uxx, ut = grad(slopes, has_aux=True)(x)
        return (ut - uxx).square().mean()

    return {
        "W2": lambda w, x, y: F.mse_loss(mlp(torch, w, x, torch.tanh), y),
        "W3": lambda w, x, y: F.mse_loss(mlp(torch, w, x, torch.relu), y),
        "W4": lambda w, x, y: F.cross_entropy(mlp(torch, w, x, torch.relu), y),
        "W5": cnn,
        "W6": lstm,
        "W7": transformer,
        "W10": pinn_compiled if mode == "compile" else pinn,
    }[name]


def _training(torch: Any, name: str, mode: str, weights: Any, inputs: Any) -> Callable[[], float]:
    loss_of = _loss(torch, name, mode)
    adam = torch.optim.Adam(
        weights, lr=data.RATE, betas=(data.BETA1, data.BETA2), eps=data.EPSILON, fused=mode != "eager" or None
    )
    if name == "W10" and mode == "compile":
        both = torch.compile(torch.func.grad_and_value(loss_of))

        def step() -> float:
            gradients, loss = both([w.detach() for w in weights], *inputs)
            for w, g in zip(weights, gradients, strict=True):
                w.grad = g
            adam.step()
            return loss.item()

        return step
    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def usual() -> float:
        loss = loss_of(weights, *inputs)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        return loss.item()

    return usual


def _embedding(torch: Any, mode: str, table: Any, ids: Any, y: Any) -> Callable[[], float]:
    F = torch.nn.functional
    sparse = mode == "eager"  # inductor has dense gradients only
    sgd = torch.optim.SGD([table], lr=data.SGD_RATE)

    def loss_of(table: Any, ids: Any, y: Any) -> Any:
        return F.mse_loss(F.embedding(ids, table, sparse=sparse).mean(1), y)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step() -> float:
        loss = loss_of(table, ids, y)
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)
        return loss.item()

    return step


def _derivative(torch: Any, name: str, mode: str, weights: Any, x: Any) -> Callable[[], Any]:
    compiled = torch.compile if mode == "compile" else lambda f: f

    def chain(x: Any) -> Any:
        y = x
        for k in range(data.CHAIN):
            y = torch.sin(y) * x if k % 2 == 0 else torch.sin(y) + x
        return y

    def elements(x: Any) -> Any:
        return (torch.tanh(x * data.SCALE + data.SHIFT) * torch.sigmoid(x) + torch.exp(-x * x)).sum()

    def rosenbrock(x: Any) -> Any:
        a, b = x[:-1], x[1:]
        return (100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2).sum()

    if name in ("W1", "W11"):
        f = compiled(chain if name == "W1" else elements)
        x.requires_grad_()

        def both() -> Any:
            y = f(x)
            return y, torch.autograd.grad(y, x)[0]

        return both
    if name == "W9":
        f = compiled(torch.func.hessian(rosenbrock))
    else:
        fixed = [w.detach() for w in weights]
        f = torch.func.jacrev(lambda x: torch.tanh(mlp(torch, fixed, x, torch.tanh)))
        f = compiled(torch.func.vmap(f) if name == "W8b" else f)
    return lambda: f(x)


def _channels_first(parameters: data.Arrays, arrays: data.Arrays) -> None:
    """W5 in PyTorch's order of axes; the first dense layer follows."""
    for k in (0, 2):
        parameters[k] = np.ascontiguousarray(parameters[k].transpose(3, 2, 0, 1))
    rows = parameters[4].reshape(7, 7, 64, 128).transpose(2, 0, 1, 3)
    parameters[4] = np.ascontiguousarray(rows.reshape(3136, 128))
    arrays[0] = np.ascontiguousarray(arrays[0].transpose(0, 3, 1, 2))


def build(torch: Any, name: str, mode: str) -> Case:
    parameters, arrays = data.make(name)
    if name == "W5":
        _channels_first(parameters, arrays)
    if name in ("W4", "W5"):
        arrays[1] = arrays[1].astype(np.int64)
    weights = [torch.tensor(p) for p in parameters]
    inputs = [torch.tensor(a) for a in arrays]
    if mode == "eager, channels last":
        last = torch.channels_last
        inputs[0] = inputs[0].contiguous(memory_format=last)
        weights[0:3:2] = [w.contiguous(memory_format=last) for w in weights[0:3:2]]
    for w in weights:
        w.requires_grad_()
    if name in data.ADAM:
        call = _training(torch, name, mode, weights, inputs)
    elif name == "W12":
        call = _embedding(torch, mode, weights[0], *inputs)
    else:
        call = _derivative(torch, name, mode, weights, *inputs)

    def check() -> list[float]:
        if name == "W11":
            y, g = call()
            return [y.item(), float(np.abs(g.numpy(), dtype=np.float64).sum())]
        if name == "W1":
            return data.fingerprint(call()[1])
        if name in ("W8a", "W8b", "W9"):
            return data.fingerprint(call().numpy())
        return [call() for _ in range(3)]

    return Case(repeat(call), check=check)
