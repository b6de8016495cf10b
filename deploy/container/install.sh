#!/bin/sh
# All steps of the image: install.sh [ROOT] installs below ROOT the wheel that DIST has, with the packages that
# requirements/container.txt pins by their hashes. ROOT is empty in an image.
set -eu
root=${1:-} source=$(cd "$(dirname "$0")/../.." && pwd)
user=65532 folder=$root/opt/cloudid data=$root/var/lib/cloudid

mkdir -p "$root/opt"
python3 -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check --no-cache-dir --quiet "$@"; }
pip install --only-binary :all: --require-hashes --requirement "$source/requirements/container.txt"
pip install --no-deps --no-index "${DIST:-$source/dist}"/cloudid-*.whl
pip uninstall --yes pip setuptools 2>/dev/null # what runs there installs nothing
cp "$source/deploy/container/healthy.py" "$folder"

mkdir -p -m 700 "$data"
[ "$(id -u)" != 0 ] || chown "$user:$user" "$data"
