#!/bin/sh
# Environments for peers that cannot live beside the project's own pins, nor beside each other.
# Usage: benchmarks/setup.sh [PYTHON]
#
# diffprivlib 0.6.6 imports a name that scikit-learn removed in 1.6, so it gets scikit-learn 1.5.2; defocus runs there
# from the source tree. OpenDP needs Polars 1.36, SmartNoise an older OpenDP and pandas 2, Tumult numpy 1 and Java.
set -eu
cd "$(dirname "$0")/.."
python="${1:-python3}"

environment() {
    name="$1"
    shift
    if [ ! -x ".bench/$name/bin/python" ]; then
        "$python" -m venv ".bench/$name"
    fi
    ".bench/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

environment diffprivlib \
    diffprivlib==0.6.6 scikit-learn==1.5.2 numpy==2.4.6 scipy==1.17.1 cryptography==50.0.2 pyarrow==26.0.1
.bench/diffprivlib/bin/python -c 'from diffprivlib.mechanisms import Laplace; Laplace(epsilon=1, sensitivity=1).randomise(0)'

environment opendp 'opendp[polars]==0.16.0' pyarrow==26.0.1
.bench/opendp/bin/python -c 'import opendp.prelude, polars'

environment smartnoise smartnoise-sql==1.0.10 opendp==0.14.2 pandas==2.3.3 pyarrow==26.0.1
.bench/smartnoise/bin/python -c 'import snsql'

environment pipelinedp pipeline-dp==0.3.1 python-dp==1.1.5 pyarrow==26.0.1
.bench/pipelinedp/bin/python -c 'import pipeline_dp'

# pure-ldp 1.2.0 does not declare scikit-learn and statsmodels, which it imports, and fails with xxhash 4.
environment local pure-ldp==1.2.0 multi-freq-ldpy==0.2.5 scikit-learn statsmodels xxhash==3.5.0
.bench/local/bin/python -c 'import pure_ldp.frequency_oracles, multi_freq_ldpy'

# Opacus beside Defocus in one process; torch is the version that Defocus is tested with.
environment opacus opacus==1.6.0 torch==2.13.0 --constraint constraints.txt --editable .
.bench/opacus/bin/python -c 'import opacus, defocus.learning.gradients'

# MST lies in the folder mechanisms of the repository of mbi, not in its package.
environment mbi mbi==2.0.0 jax==0.10.2 networkx pandas matplotlib
.bench/mbi/bin/python -W ignore -c 'import mbi'

if command -v java >/dev/null; then
    environment tumult tmlt.analytics==0.21.0 pyspark==3.5.9
    .bench/tumult/bin/python -c 'import tmlt.analytics'
else
    echo "Tumult Analytics is left out: it needs Java 17." >&2
fi

# The rest is for the scoreboard, which says of what does not install that it does not run.
environment jaxprivacy jax-privacy==2.0.0 jax==0.10.2 || echo "jax-privacy is left out." >&2
environment synth smartnoise-synth==1.0.8 || echo "SmartNoise Synth is left out." >&2
environment dpmm dpmm==0.1.9 || echo "dpmm is left out." >&2
