"""Passes in training, after torch.manual_seed: the first post's block, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer.
-> training.json (PyTorch 2.7 or newer on the CPU)"""
import json, math, os, torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.query_linear, self.key_linear, self.value_linear, self.out_linear = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (f(x).view(b, n, self.h, -1).transpose(1, 2) for f in (self.query_linear, self.key_linear, self.value_linear))
        w = (q @ k.transpose(-2, -1) / math.sqrt(d // self.h)).softmax(-1)
        return self.out_linear((w @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        self.attention, self.norm1, self.norm2 = MultiHeadAttention(d, h), nn.LayerNorm(d), nn.LayerNorm(d)
        self.linear1, self.linear2, self.drop = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.Dropout(p)

    def forward(self, x):
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.linear2(self.drop(torch.relu(self.linear1(x))))))


torch.manual_seed(3)
x, memory = torch.randn(2, 4, 8), torch.randn(2, 3, 8)
modules = {
    "block": (Block(8, 2, 0.1), (x,)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 12, dropout=0.2, batch_first=True), (x,)),
    "decoder": (nn.TransformerDecoderLayer(8, 2, 12, dropout=0.2, batch_first=True), (x, memory)),
}
cases = {}
for name, (module, inputs) in modules.items():
    torch.manual_seed(42)
    output = module.train()(*inputs)
    params = {key: value.tolist() for key, value in module.state_dict().items()}
    cases[name] = dict(inputs=[value.tolist() for value in inputs], params=params, output=output.tolist())
folder = os.path.dirname(os.path.abspath(__file__))
json.dump(dict(torch=torch.__version__, seed=42, cases=cases), open(f"{folder}/training.json", "w"))
