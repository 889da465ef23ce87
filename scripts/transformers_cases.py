# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench_transformers.py runs and how it times it: models of random weights, passes, modes."""

import copy
import time

import torch
import transformers

import tileglu.transformers

MODELS = {  # hidden, intermediate, layers, heads, heads of keys and values, vocabulary, tied embeddings
    "qwen2.5-0.5b": (896, 4864, 24, 14, 2, 151936, True),
    "qwen2.5-1.5b": (1536, 8960, 28, 12, 2, 151936, True),
    "qwen2.5-7b": (3584, 18944, 28, 28, 4, 152064, False),
    "tiny": (64, 160, 2, 4, 2, 256, True),
}
PROMPT, CACHE = 512, 1024  # of decode: tokens in the cache, and its length
PLAIN, PATCHED = "transformers", "transformers_patched"
ROUNDS, WARMUP = (10, 100), 3  # least and most samples of a contender


def build(name, device):
    """{contender: model}, of one set of weights."""
    hidden, intermediate, layers, heads, kv_heads, vocabulary, tied = MODELS[name]
    config = transformers.Qwen2Config(
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv_heads, vocab_size=vocabulary, tie_word_embeddings=tied, max_position_embeddings=32768,
        rope_theta=1e6, rms_norm_eps=1e-6, use_sliding_window=False, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        plain = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16, attn_implementation="sdpa"
        ).eval()
    patched = copy.deepcopy(plain, {id(t): t for t in (*plain.parameters(), *plain.buffers())})
    tileglu.transformers.patch(patched, strict=True)
    return {PLAIN: plain, PATCHED: patched}


def ids_of(model, batch, tokens):
    return torch.randint(model.config.vocab_size, (batch, tokens), device=model.device)


# --- What is run: functions that give (prepare, run), prepare being outside the measured time --------------------------


def prefill(model, batch, tokens, seed=1):
    torch.manual_seed(seed)
    inputs = {"input_ids": ids_of(model, batch, tokens), "attention_mask": {"full_attention": None}}  # None: causal
    return (lambda: None), (lambda: model(**inputs, use_cache=False, logits_to_keep=1).logits)


def decode(model, batch, _tokens=1, seed=1):
    torch.manual_seed(seed)
    prompt, token = ids_of(model, batch, PROMPT), ids_of(model, batch, 1)
    cache = transformers.StaticCache(config=model.config, max_cache_len=CACHE)
    getattr(model, "_orig_mod", model)(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
    seen = torch.arange(CACHE, device=model.device) <= PROMPT
    inputs = {
        "input_ids": token, "past_key_values": cache, "use_cache": True,
        "position_ids": torch.full((batch, 1), PROMPT, device=model.device),
        "attention_mask": {"full_attention": seen.expand(batch, 1, 1, CACHE).contiguous()},
    }  # fmt: skip

    def prepare():
        for layer in cache.layers:
            layer.cumulative_length.fill_(PROMPT)

    return prepare, lambda: model(**inputs).logits


def captured(prepare, run):
    """The same as a replayed CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMUP):
            prepare()
            wanted = run()
    torch.cuda.current_stream().wait_stream(side)
    prepare()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run()
    prepare()
    graph.replay()
    check_logits(found, wanted)
    return prepare, graph.replay


def check_logits(found, wanted):
    difference = float((found.float() - wanted.float()).norm() / wanted.float().norm())
    if not difference < 0.05:
        raise RuntimeError(f"logits differ from those of the eager pass by {difference:.3g} (relative)")


def in_mode(mode, make, model, batch, tokens):
    if mode == "cuda_graph":
        return captured(*make(model, batch, tokens))
    if mode == "compile":
        options = {"mode": "reduce-overhead"} if model.device.type == "cuda" else {"backend": "aot_eager"}
        wanted = make(model, batch, tokens)[1]()
        prepare, run = make(torch.compile(model, fullgraph=True, **options), batch, tokens)
        check_logits(run(), wanted)
        return prepare, run
    return make(model, batch, tokens)


# --- Measuring --------------------------------------------------------------------------------------------------------


def seconds_of(prepare, run, device):
    prepare()
    if device.type == "cpu":
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda.synchronize()
    events[0].record()
    run()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / 1e3


def interleaved(contenders, device, limit):
    """{name: sorted seconds}"""
    for pair in contenders.values():
        for _ in range(WARMUP):
            seconds_of(*pair, device)
    found, start = {name: [] for name in contenders}, time.perf_counter()
    names = list(contenders)
    for turn in range(ROUNDS[1]):
        if turn >= ROUNDS[0] and time.perf_counter() - start > limit:
            break
        for name in names if turn % 2 else reversed(names):
            found[name].append(seconds_of(*contenders[name], device))
    return {name: sorted(values) for name, values in found.items()}
