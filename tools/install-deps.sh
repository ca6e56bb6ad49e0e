#!/usr/bin/env bash
# Install the Debian packages that building and testing need and that are missing.
#
#   tools/install-deps.sh                 install what is missing (apt-get, as root or by sudo -n)
#   tools/install-deps.sh --check [PKG]   only say what is missing; status 1 then
#
# A few compiler calls when everything is there; no network then.
set -eu

compiler=${CC:-cc}
need=(gcc libc6-dev pkg-config liblua5.4-dev libcmocka-dev libdlpack-dev libmd-dev)
check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
    if [ $# -gt 0 ]; then need=("$@"); fi
fi

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { printf '#include <%s>\n' "$@" | $compiler -I/usr/include/lua5.4 -E -o /dev/null - 2>/dev/null; }

has_package() {
    case $1 in
    gcc) has_command "$compiler" ;;
    libc6-dev) has_header stdio.h ;;
    pkg-config) has_command pkg-config ;;
    liblua5.4-dev) has_header lua.h lauxlib.h ;;
    libcmocka-dev) has_header stdarg.h stddef.h setjmp.h stdint.h cmocka.h ;;
    libdlpack-dev) has_header dlpack/dlpack.h ;;
    libmd-dev) has_header sys/types.h sha256.h ;;
    libopenblas-dev) has_header cblas.h ;;
    *) return 1 ;;
    esac
}

missing=()
for package in "${need[@]}"; do
    has_package "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if [ $check = yes ]; then
    echo "missing: ${missing[*]}; install with: apt-get install ${missing[*]}" >&2
    exit 1
fi

become=()
if [ "$(id -u)" -ne 0 ]; then become=(sudo -n); fi
if ! has_command apt-get || { [ ${#become[@]} -gt 0 ] && ! "${become[@]}" true 2>/dev/null; }; then
    echo "missing, and not installable from here: ${missing[*]}" >&2
    echo "as root: apt-get install ${missing[*]}" >&2
    exit 1
fi

echo "installing ${missing[*]}"
install_missing() {
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}"
}
# Package lists of a fresh machine are empty or old: read them once when the first try fails.
install_missing >/dev/null 2>&1 || { "${become[@]}" apt-get update -q >/dev/null && install_missing; }
