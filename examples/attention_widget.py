"""Attention of a PyTorch model in a Jupyter notebook, from its tensors: without a server or a network.

    pip install -r requirements.txt; npm install attnscope

    from attention_widget import Attention
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    _, weights = module(x, x, x, average_attn_weights=False)
    Attention.of(weights[0], "the cat sat".split())
"""

import pathlib

import anywidget
import traitlets

BUNDLED = "bundled/attnscope.anywidget.js"
INSTALLED = pathlib.Path("node_modules/attnscope") / BUNDLED
# In a checkout, after `npm run build`, the package need not be installed.
BUILT = pathlib.Path(__file__).parent.parent / BUNDLED


class Attention(anywidget.AnyWidget):
    _esm = INSTALLED if INSTALLED.exists() else BUILT
    weights = traitlets.Bytes().tag(sync=True)  # float32, row-major
    shape = traitlets.List().tag(sync=True)  # heads, queries, keys
    tokens = traitlets.List().tag(sync=True)
    key_tokens = traitlets.List().tag(sync=True)
    look = traitlets.Enum(["heads", "lines"], "heads").tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)  # head, query and key under the cursor

    @classmethod
    def of(cls, weights, tokens, **rest):
        """`weights` is [heads, queries, keys]: a tensor of PyTorch, or an array of NumPy."""
        array = weights.detach().cpu().float().numpy() if hasattr(weights, "detach") else weights.astype("float32")
        return cls(weights=array.tobytes(), shape=list(array.shape), tokens=list(tokens), **rest)
