"""A small random checkpoint whose output depends on every token of its prompt, so that wrong KV bytes show."""

import pathlib
import sys


def make(folder, seed=0):
    """Writes the checkpoint, unless it is there; 2.9 million parameters, a vocabulary of 1,024."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder = pathlib.Path(folder)
    if (folder / "config.json").exists():
        return folder
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=1024,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            tie_word_embeddings=False,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 1.0 if "embed" in name else 0.12)
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    make(sys.argv[1])
