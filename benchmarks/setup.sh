#!/bin/sh
# Environments for peers that cannot live beside the project's own pins. Usage: benchmarks/setup.sh [PYTHON]
#
# diffprivlib 0.6.6 imports a name that scikit-learn removed in 1.6, so it gets scikit-learn 1.5.2 and its own
# environment; defocus runs there from the source tree.
set -eu
cd "$(dirname "$0")/.."
python="${1:-python3}"
peer=.bench/diffprivlib
if [ ! -x "$peer/bin/python" ]; then
    "$python" -m venv "$peer"
fi
"$peer/bin/python" -m pip install --quiet --disable-pip-version-check \
    diffprivlib==0.6.6 scikit-learn==1.5.2 numpy==2.4.6 scipy==1.17.1 cryptography==50.0.2
"$peer/bin/python" -c 'from diffprivlib.mechanisms import Laplace; Laplace(epsilon=1, sensitivity=1).randomise(0)'
