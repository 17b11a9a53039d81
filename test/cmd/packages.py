"""The packages for Python and Node as tests of other things use them: from the sources and the build, not installed."""
import functools
import os
import shutil

from harness import CLAVE, SOURCE, scratch

BUILD = os.path.dirname(os.path.abspath(CLAVE))
_BRIDGE = f"{BUILD}/python/_bridge.so.1"


def why_no_python():
    return None if os.path.exists(_BRIDGE) else "clave was built without its Python package"


def why_no_node():
    return None if shutil.which("node") else "node is not installed"


@functools.lru_cache(maxsize=None)
def python_package():
    """A folder for PYTHONPATH."""
    made = scratch("python")
    shutil.copytree(f"{SOURCE}/packages/python/clave", f"{made}/clave")
    shutil.copy(_BRIDGE, f"{made}/clave")
    return made
