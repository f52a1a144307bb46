"""A real engine in a process of its own, told what to do by lines of JSON on its standard input.

The answer to each line goes to the descriptor that ``--answers`` names, since the engine writes to all the others.
"""

import argparse
import json
import os
import sys


def sampling_of(told):
    from vllm import SamplingParams

    return SamplingParams(
        temperature=0.0, max_tokens=told.get("tokens", 24), ignore_eos=True, detokenize=False, logprobs=0
    )


def abort(engine, told):
    """Steps the engine itself, which then has to run in this process: some of the prompts are given up after some steps."""
    core = engine.llm_engine
    ids = [
        core.add_request(f"abort/{told['name']}/{i}", {"prompt_token_ids": prompt}, sampling_of(told))
        for i, prompt in enumerate(told["prompts"])
    ]
    done = {}
    for step in range(100_000):
        if step == told["steps"]:
            core.abort_request([ids[i] for i in told["aborted"]], internal=True)
        if not core.has_unfinished_requests():
            break
        for output in core.step():
            if output.finished:
                done[output.request_id] = outcome(output)
    kept = [i for i in range(len(ids)) if i not in told["aborted"]]
    return {"done": {str(i): found for i in kept for name, found in done.items() if ids[i].startswith(name)}}


def outcome(output):
    tokens = list(output.outputs[0].token_ids)
    logprobs = output.outputs[0].logprobs or []
    return {
        "tokens": tokens,
        "logprobs": [step[token].logprob for step, token in zip(logprobs, tokens)],
        "cached": output.num_cached_tokens or 0,
        "reason": output.outputs[0].finish_reason,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, required=True)
    parser.add_argument("--options", required=True)
    arguments = parser.parse_args()

    from vllm import LLM

    answers = os.fdopen(arguments.answers, "w")
    options = {
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 2048,
        "max_num_seqs": 4,
        "block_size": 32,
        "enable_prefix_caching": True,
        "prefix_caching_hash_algo": "sha256_cbor",
        "seed": 0,
        "generation_config": "vllm",
        "kv_cache_memory_bytes": 64 << 20,
        "disable_log_stats": False,
        **json.loads(arguments.options),
    }
    try:
        engine = LLM(**options)
    except Exception as e:
        print(json.dumps({"refused": f"{type(e).__name__}: {e}"}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        answer = {}
        if told["do"] == "generate":
            prompts = [
                {"prompt_token_ids": ids, **({"cache_salt": told["salt"]} if told.get("salt") else {})}
                for ids in told["prompts"]
            ]
            answer = [outcome(output) for output in engine.generate(prompts, sampling_of(told), use_tqdm=False)]
        elif told["do"] == "abort":
            answer = abort(engine, told)
        elif told["do"] == "reset":
            answer = {"reset": engine.reset_prefix_cache(reset_connector=told.get("connector", False))}
        elif told["do"] == "metrics":
            for metric in engine.get_metrics():
                if hasattr(metric, "value") and any(part in metric.name for part in ("orbitkv", "prefix_cache", "preemptions")):
                    answer[metric.name] = answer.get(metric.name, 0) + metric.value
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
