# SPDX-License-Identifier: Apache-2.0
"""A Transformers model, patched in one line. Random weights; from_pretrained models are patched the same way."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

import tileglu.transformers

device = "cuda" if torch.cuda.is_available() else "cpu"
config = Qwen2Config(
    vocab_size=1000, hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = Qwen2ForCausalLM(config).to(device, torch.bfloat16).eval()
ids = torch.arange(32, device=device).reshape(2, 16)

with torch.no_grad():
    before = model(ids).logits
    print(tileglu.transformers.patch(model))
    after = model(ids).logits
print("largest difference of the logits:", float((after - before).abs().max()))
print("unpatched modules:", tileglu.transformers.unpatch(model))
