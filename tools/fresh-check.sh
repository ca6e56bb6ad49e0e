#!/usr/bin/env bash
# What a stranger does, on a machine that has nothing: tools/fresh-check.sh [FOLDER]
#
# debootstrap makes a minimal Debian in a folder (a temporary one that is removed at the end; FOLDER stays, and is used
# again). It gets git, make and certificates, a clone of what is committed here, and then goes through the README: make demo,
# the ten lines, the lines of C and of Python; then the tutorials of docs/, block by block; then make wheel-check; with
# FPA_FRESH_TEST set also make test. Every command and what it prints is shown. As root, with a network.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
suite=${FPA_FRESH_SUITE:-bookworm}
mirror=${FPA_FRESH_MIRROR:-http://deb.debian.org/debian}

[ "$(id -u)" -eq 0 ] || { echo "fresh-check: chroot needs root" >&2; exit 2; }
for program in debootstrap chroot git; do
    command -v $program >/dev/null || { echo "fresh-check: $program is missing: apt-get install debootstrap" >&2; exit 2; }
done

folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    temporary=$folder
fi
leave() {
    umount "$folder/proc" 2>/dev/null || true
    [ -z "${temporary:-}" ] || rm -rf --one-file-system "$temporary"
}
trap leave EXIT

if [ ! -e "$folder/etc/debian_version" ]; then
    echo "== debootstrap $suite"
    debootstrap --variant=minbase "$suite" "$folder" "$mirror" >"${TMPDIR:-/tmp}/debootstrap.$$.log" 2>&1 ||
        { tail -n 20 "${TMPDIR:-/tmp}/debootstrap.$$.log" >&2; exit 1; }
    rm -f "${TMPDIR:-/tmp}/debootstrap.$$.log"
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"
mountpoint -q "$folder/proc" || mount -t proc proc "$folder/proc" 2>/dev/null || true # compilers count processors there

# Variables of the caller's stay outside, but for proxies.
inside() {
    local name settings=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        if [ -n "${!name:-}" ]; then settings+=("$name=${!name}"); fi
    done
    chroot "$folder" env -i "${settings[@]}" bash -eu -o pipefail -c "cd /root/fpac; $1"
}

step() { # NAME COMMANDS
    local began=$SECONDS
    echo "== $1"
    inside "$2" || { echo "fresh-check: $1 failed"; exit 1; }
    echo "== $1: done, $((SECONDS - began)) s"
}

rm -rf "$folder/root/fpac" "$folder/root/.cache"
mkdir -p "$folder/root/fpac"
step "git, make" "apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends git make ca-certificates >/dev/null"
# Behind a proxy that speaks TLS itself: its certificates, as the caller's programs have them.
if [ -n "${SSL_CERT_FILE:-}" ]; then cp -L "$SSL_CERT_FILE" "$folder/etc/ssl/certs/ca-certificates.crt"; fi
rm -rf "$folder/root/fpac"
git clone -q "$here" "$folder/root/fpac"

# The block of the README whose first line is the given one.
block_of() { awk -v first="$1" '/^```/ { inside = !inside; show = 0; next } inside && !show && index($0, first) == 1 { show = 1 } show' "$here/README.md"; }

step "make demo" "make demo"
printf '%s\n' "$(block_of 'build/fpac new mine')" >"$folder/root/ten-lines.sh"
[ -s "$folder/root/ten-lines.sh" ] || { echo "fresh-check: README.md has no ten lines" >&2; exit 1; }
step "the README's ten lines" "bash -eu -x /root/ten-lines.sh"
step "install, and a program in C" "make install >/dev/null && ldconfig && cc -o /tmp/hand examples/prefill_decode.c \$(pkg-config --cflags --libs fpa) && /tmp/hand mine.lua"
printf '%s\n' "$(block_of 'import fpac')" >"$folder/root/lines.py"
[ -s "$folder/root/lines.py" ] || { echo "fresh-check: README.md has no lines of Python" >&2; exit 1; }
step "the README's lines of Python" "apt-get install -y -q --no-install-recommends python3-numpy >/dev/null && PYTHONPATH=python python3 -c 'exec(open(\"/root/lines.py\").read()); print(head, o.shape, state.shape)'"
step "tutorials" "tools/docs-run.sh build/fpac docs/*.md"
step "make wheel-check" "make wheel-check"
if [ -n "${FPA_FRESH_TEST:-}" ]; then step "make test" "make test"; fi
echo "fresh-check: all of it works on $(cat "$folder/etc/debian_version")"
