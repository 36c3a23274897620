# SPDX-License-Identifier: GPL-2.0-or-later
# A script as people have them: no options, no timing, no word of fettle.
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DATA = os.environ.get("PLAIN_DATA", "data")


class Pictures(Dataset):
    def __init__(self):
        self.files = sorted(f for f in os.listdir(DATA) if f.endswith(".npy"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        x = np.load(os.path.join(DATA, self.files[i])).astype(np.float32) / 255
        return torch.from_numpy((x - x.mean()) / (x.std() + 1e-3)), i % 10


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                      nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Pictures(), batch_size=16, shuffle=True)

for epoch in range(2):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
