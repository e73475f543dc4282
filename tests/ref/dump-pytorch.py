#!/usr/bin/env python3
"""Stages and logits of the reference model code, for npy-cmp and parity.sh.

usage: dump-pytorch.py HF-MODEL IDS DIR

HF-MODEL is a folder or a name on the hub (GSAI-ML/LLaDA-8B-Instruct,
Dream-org/Dream-v0-Instruct-7B), IDS a file with one token line, as tok-encode
prints it.  Files in DIR are those of dllm-forward --dump: float32, shape
(positions, width), logits as the head gives them, not shifted; q and k in the
row order of the GGUF file.  Needs numpy, torch and transformers (the version
that the model's page asks for), and memory for the model in float32.
"""
import os
import sys

import numpy as np
import torch
from transformers import AutoModel


def first(x):
    return x[0] if isinstance(x, tuple) else x


class Dump:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def save(self, name, x):
        x = first(x)[0].detach().to(torch.float32).cpu().numpy()
        np.save(os.path.join(self.folder, name + ".npy"),
                np.ascontiguousarray(x))

    def heads(self, name, x, interleave):
        """(1, heads, positions, width) to (positions, heads * width).

        The converter of LLaDA puts the halves of each head side by side:
        row 2i + s of the file is row s * width/2 + i of the checkpoint.
        """
        _, n_heads, n, width = x.shape
        if interleave:
            x = x.reshape(1, n_heads, n, 2, width // 2).transpose(3, 4)
        x = x.reshape(1, n_heads, n, width).transpose(1, 2)
        self.save(name, x.reshape(1, n, n_heads * width))

    def output(self, name, module):
        module.register_forward_hook(
            lambda _module, _args, result: self.save(name, result))

    def input(self, name, module):
        module.register_forward_pre_hook(
            lambda _module, args: self.save(name, args[0]))


def hook_llada(model, dump):
    t = model.model.transformer
    dump.output("embd", t.wte)
    dump.output("norm", t.ln_f)
    for i, block in enumerate(t.blocks):
        hook_layer(dump, i, block, block.attn_norm, block.v_proj,
                   block.attn_out, block.ff_norm, block.ff_out)

        def rotated(_module, _args, result, n=i):
            dump.heads("%02d.q" % n, result[0], True)
            dump.heads("%02d.k" % n, result[1], True)

        block.rotary_emb.register_forward_hook(rotated)


def hook_dream(model, dump):
    dump.output("embd", model.model.embed_tokens)
    dump.output("norm", model.model.norm)
    for i, layer in enumerate(model.model.layers):
        hook_layer(dump, i, layer, layer.input_layernorm,
                   layer.self_attn.v_proj, layer.self_attn.o_proj,
                   layer.post_attention_layernorm, layer.mlp.down_proj)
    # RoPE is a function of the module, called once for each layer in order.
    code = sys.modules[type(model).__module__]
    rotate, calls = code.apply_rotary_pos_emb, []

    def rotated(*args, **named):
        q, k = rotate(*args, **named)
        dump.heads("%02d.q" % len(calls), q, False)
        dump.heads("%02d.k" % len(calls), k, False)
        calls.append(1)
        return q, k

    code.apply_rotary_pos_emb = rotated


def hook_layer(dump, i, layer, attn_norm, v, attn_out, ffn_norm, ffn_out):
    dump.output("%02d.attn_norm" % i, attn_norm)
    dump.output("%02d.v" % i, v)
    dump.input("%02d.attn" % i, attn_out)
    dump.output("%02d.attn_out" % i, attn_out)
    dump.input("%02d.attn_res" % i, ffn_norm)
    dump.output("%02d.ffn_norm" % i, ffn_norm)
    dump.input("%02d.ffn_act" % i, ffn_out)
    dump.output("%02d.ffn_out" % i, ffn_out)
    dump.output("%02d.out" % i, layer)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n")[2])
    with open(sys.argv[2], encoding="ascii") as f:
        ids = torch.tensor([[int(word) for word in f.readline().split()]])
    model = AutoModel.from_pretrained(
        sys.argv[1], trust_remote_code=True, torch_dtype=torch.float32).eval()
    dump = Dump(sys.argv[3])
    named = {}
    if type(model).__name__.startswith("LLaDA"):
        hook_llada(model, dump)
    else:
        hook_dream(model, dump)
        named["attention_mask"] = "full"  # as its generation does
    with torch.no_grad():
        dump.save("logits", model(ids, **named).logits)


main()
