#!/bin/sh
# Builds the image with podman or docker, and runs it once: initialises a store in a volume, starts the server on a
# read-only root file system, and waits until the health check passes.
set -eu
cd "$(dirname "$0")/../.."
builder=$(command -v podman || command -v docker) || { echo 'podman or docker is needed' >&2; exit 1; }
name=cloudid-try-$$
"$builder" build --tag "$name" .
trap '"$builder" rm --force "$name" >/dev/null 2>&1; "$builder" volume rm "$name" >/dev/null; "$builder" rmi "$name" >/dev/null' EXIT
"$builder" volume create "$name" >/dev/null
in_volume() { "$builder" run --rm --interactive --read-only --volume "$name:/var/lib/cloudid" "$@"; }
printf '[server]\nlisten = "127.0.0.1:8200"\n' | in_volume --entrypoint /bin/sh "$name" -c 'umask 077 && cat >/var/lib/cloudid/cloudid.toml'
in_volume "$name" init --settings /var/lib/cloudid/cloudid.toml >/dev/null
"$builder" run --detach --name "$name" --read-only --volume "$name:/var/lib/cloudid" "$name" >/dev/null
tries=30
until "$builder" exec "$name" /opt/cloudid/bin/python /opt/cloudid/healthy.py /var/lib/cloudid/cloudid.toml; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { "$builder" logs "$name" >&2; exit 1; }
    sleep 1
done
echo 'the container is healthy'
