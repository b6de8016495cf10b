#!/bin/sh
# Installs the server for an image: install.sh [ROOT] creates ROOT/opt/cloudid with the wheel in DIST and the packages
# that requirements/container.txt pins with their hashes. ROOT is empty in an image. Where DIST has no wheel, it is built.
set -eu
root=${1:-} source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$root/opt/cloudid dist=${DIST:-$source/dist}

install_in() {
    venv=$1
    shift
    "$venv/bin/python" -m pip --disable-pip-version-check --no-cache-dir --quiet install "$@"
}

if ! ls "$dist"/cloudid-*.whl >/dev/null 2>&1; then
    dist=$(mktemp -d)
    python3 -m venv "$dist/venv"
    install_in "$dist/venv" --only-binary :all: --require-hashes --requirement "$source/requirements/build.txt"
    "$dist/venv/bin/python" -m pip --disable-pip-version-check --quiet wheel --no-deps --no-build-isolation \
        --wheel-dir "$dist" "$source"
fi

mkdir -p "$root/opt"
python3 -m venv "$folder"
install_in "$folder" --only-binary :all: --require-hashes --requirement "$source/requirements/container.txt"
install_in "$folder" --no-deps --no-index "$dist"/cloudid-*.whl
"$folder/bin/python" -m pip --quiet uninstall --yes pip setuptools 2>/dev/null # nothing is installed in a running container
cp "$source/deploy/container/healthy.py" "$folder"
