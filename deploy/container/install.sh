#!/bin/sh
# Installs the wheel of the folder DIST with the packages of a requirements file, checked by their hashes, into a folder:
#     install.sh DIST REQUIREMENTS FOLDER
set -eu
dist=$1 requirements=$2 folder=$3

python3 -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check --no-cache-dir --quiet "$@"; }
pip install --require-hashes --only-binary :all: -r "$requirements"
pip install --no-index --no-deps "$dist"/cloudid-*.whl
pip uninstall --yes pip setuptools 2>/dev/null # what runs there installs nothing
