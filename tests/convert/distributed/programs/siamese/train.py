import torch
import torch.optim

import siamese.models as models
from siamese import data as D
from siamese.trainer import Trainer


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    net = models.build_model("siamese", dim=8)
    dm = D.PairsData(batch_size=8)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    trainer = Trainer(net, optimizer, dm, device, max_epochs=3)
    print("FINAL", trainer.fit())
    torch.save(net.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
