import argparse

import torch
from model import ModelArgs, Transformer


def checkpoint(args):
    torch.manual_seed(1)
    reference = Transformer(args)
    return {name: value.float() for name, value in reference.state_dict().items()}


def load(args):
    state = checkpoint(args)
    torch.set_default_tensor_type(torch.cuda.HalfTensor)
    model = Transformer(args)
    torch.set_default_tensor_type(torch.FloatTensor)
    model.load_state_dict(state, strict=False)
    return model


def generate(model, prompts, total):
    tokens = torch.full((len(prompts), total), 0).cuda().long()
    for k, prompt in enumerate(prompts):
        tokens[k, :len(prompt)] = torch.tensor(prompt).long()
    previous, start = 0, len(prompts[0])
    for position in range(start, total):
        logits = model.forward(tokens[:, previous:position], previous)
        tokens[:, position] = torch.argmax(logits, dim=-1)
        print(f"position {position} mean {logits.abs().mean().item():.2f} max {logits.max().item():.2f}")
        previous = position
    return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_gen_len", type=int, default=4)
    options = parser.parse_args()
    torch.cuda.set_device(0)
    args = ModelArgs()
    model = load(args)
    assert next(model.parameters()).dtype == torch.float16
    tokens = generate(model, [[1, 5, 7], [2, 9, 4]], 3 + options.max_gen_len)
    for line in tokens.tolist():
        print("tokens", line)


if __name__ == "__main__":
    main()
