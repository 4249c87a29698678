"""Trains the classifier; all that can be set is in settings.json."""

import json
from pathlib import Path
from types import SimpleNamespace

import torch

from data import loaders
from engine import evaluate, train_one_epoch
from net import build


def read_settings():
    path = Path(__file__).with_name("settings.json")
    return json.loads(path.read_text(), object_hook=lambda found: SimpleNamespace(**found))


def place_of(settings):
    return f"{settings.place.family.lower()}:{settings.place.number}"


def main():
    settings = read_settings()
    place = place_of(settings)
    model = build().to(place)
    optimizer = torch.optim.SGD(model.parameters(), settings.rate)
    train, test = loaders(settings.batch)
    for epoch in range(settings.epochs):
        train_one_epoch(model, train, optimizer, place, epoch)
    evaluate(model, test, place)


if __name__ == "__main__":
    main()
