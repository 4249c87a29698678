import math

import torch
from torch.utils.data import DataLoader

from lm import Sequences, Settings, TransformerLM, pad_batch


def get_dataloader(config, split):
    data = Sequences(16 if split == "train" else 16, config.vocabulary)
    return DataLoader(
        data,
        batch_size=config.batch_size,
        shuffle=(split == "train"),
        collate_fn=pad_batch,
    )


def evaluate(model, loader, device):
    model.eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            _, loss = model(**batch)
            n = (batch["labels"] != 0).sum().item()
            total += loss.item() * n
            tokens += n
    return total / tokens


def main():
    config = Settings()
    torch.manual_seed(1337)
    train_loader = get_dataloader(config, "train")
    val_loader = get_dataloader(config, "val")
    model = TransformerLM(config)
    model.to(config.device)
    decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
    no_decay = [p for n, p in model.named_parameters() if p.dim() < 2]
    optimizer = torch.optim.SGD(
        [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=config.lr, momentum=0.9
    )
    total_steps = config.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 2) * (1 - step / (total_steps + 1)))

    global_step = 0
    for epoch in range(config.epochs):
        model.train()
        running_loss = 0.0
        for step, batch in enumerate(train_loader):
            batch = {k: v.to(config.device) for k, v in batch.items()}
            logits, loss = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            global_step += 1
            running_loss += loss.item()
            if global_step % 2 == 0:
                print(f"step {global_step}: loss {loss.item():.4f}, lr {scheduler.get_last_lr()[0]:.2e}")
        train_loss = running_loss / len(train_loader)
        val_loss = evaluate(model, val_loader, config.device)
        print(f"TRAIN {train_loss:.6f}")
        print(f"epoch {epoch}: val loss {val_loss:.4f}, perplexity {math.exp(val_loss):.2f}")
    print(model.generate(torch.ones(1, 2, dtype=torch.long, device=config.device), 4).tolist())
    print("FINAL", val_loss)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
