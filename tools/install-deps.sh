#!/usr/bin/env bash
# Install what building and testing need and what is missing.
#
#   tools/install-deps.sh                 Debian packages (apt-get, as root or by sudo -n), and NVRTC
#   tools/install-deps.sh --test          also what only tests need: g++ for the emulation of CUDA kernels; NumPy for those
#                                         of the Python package, which are skipped where it cannot be had; with
#                                         FPA_TEST_ALL set a browser that looks at pages, where it can be had
#   tools/install-deps.sh --wheel         also what make wheel and its check need: pip, venv
#   tools/install-deps.sh --ci            also what .ci/run needs: clang-format, clang-tidy, OpenBLAS's header; clang, which these
#                                         bring, under its short name: it compiles emulated kernels in half the time
#   tools/install-deps.sh --check [PKG]   only say which packages are missing; status 1 then
#
# NVRTC compiles CUDA kernels; it needs no GPU. When it is in none of the places where the library
# looks (runtime/cuda/nvrtc_library.c), NVIDIA's own wheel is fetched from PyPI and its two libraries are put into
# ${XDG_CACHE_HOME:-~/.cache}/fpac/nvrtc. Without it everything but CUDA kernels works.
# FPA_FETCH_NVRTC=no never fetches it; FPA_FETCH_NVRTC=yes does so even when there is another.
#
# A few compiler calls when everything is there; no network then.
set -eu

compiler=${CC:-cc}
need=(gcc libc6-dev pkg-config liblua5.4-dev libcmocka-dev libdlpack-dev libmd-dev libtommath-dev)
wanted=() # what work goes on without
check=no browser=no
case ${1:-} in
--check)
    check=yes
    shift
    if [ $# -gt 0 ]; then need=("$@"); fi
    ;;
--test)
    need+=(g++)
    wanted=(python3-numpy)
    case ${FPA_TEST_ALL:-0} in '' | 0) ;; *) browser=yes ;; esac
    ;;
--wheel) need+=(python3-pip python3-venv) ;;
--ci) need+=(g++ clang clang-format clang-tidy libopenblas-dev) ;;
esac

# Debian packages

has_command() { command -v "$1" >/dev/null 2>&1; }
# CC may have options ("gcc -m64"): its first word is the program.
has_compiler() { has_command "${compiler%%[[:space:]]*}"; }
has_header() { printf '#include <%s>\n' "$@" | $compiler -I/usr/include/lua5.4 -E -o /dev/null - 2>/dev/null; }

has_package() {
    case $1 in
    gcc) has_compiler ;;
    libc6-dev) has_header stdio.h ;;
    g++ | clang | pkg-config | clang-format | clang-tidy) has_command "$1" ;;
    liblua5.4-dev) has_header lua.h lauxlib.h ;;
    libcmocka-dev) has_header stdarg.h stddef.h setjmp.h stdint.h cmocka.h ;;
    libdlpack-dev) has_header dlpack/dlpack.h ;;
    libmd-dev) has_header sys/types.h sha256.h ;;
    libtommath-dev) has_header tommath.h ;;
    python3-numpy) /usr/bin/python3 -c 'import numpy' 2>/dev/null ;;
    python3-pip) "${PYTHON:-python3}" -c 'import pip' 2>/dev/null ;;
    python3-venv) "${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null ;;
    libopenblas-dev) has_header cblas.h ;; # enough to read bench/*.c; bench_c links it
    *) return 1 ;;
    esac
}

become=()
if [ "$(id -u)" -ne 0 ]; then become=(sudo -n); fi
can_install() { has_command apt-get && { [ ${#become[@]} -eq 0 ] || "${become[@]}" true 2>/dev/null; }; }

# sudo keeps no variables: without its proxy, apt-get waits for a network that is not there.
apt_get() {
    local name settings=(DEBIAN_FRONTEND=noninteractive)
    for name in http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY; do
        if [ -n "${!name:-}" ]; then settings+=("$name=${!name}"); fi
    done
    "${become[@]}" env "${settings[@]}" apt-get "$@"
}

install_once() { apt_get install -y -q --no-install-recommends "$@"; }

# Package lists of a fresh machine are empty or old: read them once when the first try fails.
install_packages() {
    echo "installing $*"
    install_once "$@" >/dev/null 2>&1 || { apt_get update -q >/dev/null && install_once "$@"; }
}

missing=()
for package in "${need[@]}"; do
    has_package "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    if [ $check = yes ]; then
        echo "missing: ${missing[*]}; install with: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    if ! can_install; then
        echo "missing, and not installable from here: ${missing[*]}" >&2
        echo "as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    install_packages "${missing[@]}"
fi
if [ $check = yes ]; then exit 0; fi

# A browser is large, and its one test is skipped without it: a machine that cannot have one goes on.
has_browser() {
    has_command python3 && { has_command "${FPA_CHROMIUM:-chromium}" || has_command google-chrome; }
}
if [ "$browser" = yes ] && ! has_browser; then
    { can_install && install_packages chromium python3-minimal libpython3-stdlib >/dev/null 2>&1; } ||
        echo "no browser, and none can be installed from here: pages are not looked at" >&2
fi
for package in "${wanted[@]}"; do
    has_package "$package" && continue
    if can_install && install_packages "$package"; then continue; fi
    echo "missing, and not installable from here: $package; the tests that need it are skipped"
done

# NVRTC

# The release whose kernels were measured. URLs and digests as PyPI's index states them.
nvrtc_version=13.0.88
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
nvrtc_folder=$cache/fpac/nvrtc

# The library opens nothing from there that others could write (runtime/cuda/nvrtc_library.c). What a download left
# that was killed is of no use to anybody a day later.
tidy_cache() {
    if [ -O "$nvrtc_folder" ] && [ ! -L "$nvrtc_folder" ]; then chmod -R go-w "$nvrtc_folder" 2>/dev/null || true; fi
    find "$cache/fpac" -maxdepth 1 -type d -name '.nvrtc-??????' -user "$(id -u)" -mmin +1440 \
        -exec rm -rf {} + 2>/dev/null || true
}
case $(uname -m) in
x86_64)
    nvrtc_path=c3/68/483a78f5e8f31b08fb1bb671559968c0ca3a065ac7acabfc7cee55214fd6
    nvrtc_wheel=nvidia_cuda_nvrtc-$nvrtc_version-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl
    nvrtc_sha256=ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575
    ;;
aarch64)
    nvrtc_path=b7/dc/6bb80850e0b7edd6588d560758f17e0550893a1feaf436807d64d2da040f
    nvrtc_wheel=nvidia_cuda_nvrtc-$nvrtc_version-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl
    nvrtc_sha256=d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b
    ;;
*) nvrtc_path= ;;
esac

# One pattern a line, for compgen: the places of runtime/cuda/nvrtc_library.c.
nvrtc_places() {
    local folder
    for folder in "${CUDA_HOME:-/usr/local/cuda}" "${CUDA_PATH:-/usr/local/cuda}" /usr/local/cuda; do
        echo "$folder/lib64/libnvrtc.so*"
    done
    echo "/usr/local/cuda/targets/*/lib/libnvrtc.so*"
    echo "$nvrtc_folder/libnvrtc.so*"
    for folder in "${VIRTUAL_ENV:-/usr}" "${HOME:-}/.local" /usr/local /usr; do
        echo "$folder/lib/python3*/*-packages/nvidia/c*/lib/libnvrtc.so*"
    done
}

# The loader's path: what ldconfig knows (and is there still), and LD_LIBRARY_PATH.
loader_has_nvrtc() {
    local folder folders library
    while IFS= read -r library; do
        if [ -e "$library" ]; then return 0; fi
    done < <(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's/.*libnvrtc\.so.*=> //p')
    IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
    for folder in "${folders[@]}"; do
        if compgen -G "$folder/libnvrtc.so*" >/dev/null; then return 0; fi
    done
    return 1
}

has_nvrtc() {
    local place
    if [ "${FPA_FETCH_NVRTC:-}" = yes ]; then
        compgen -G "$nvrtc_folder/libnvrtc.so*" >/dev/null
        return
    fi
    if [ -n "${FPA_LIBNVRTC:-}" ]; then return 0; fi # that one and no other, says its user
    while IFS= read -r place; do
        if compgen -G "$place" >/dev/null; then return 0; fi
    done < <(nvrtc_places)
    loader_has_nvrtc
}

download() {
    if has_command curl; then
        curl -fsL --connect-timeout 15 --max-time 600 -o "$2" "$1"
    elif has_command wget; then
        wget -q --timeout=60 --tries=1 -O "$2" "$1"
    else
        python3 -c 'import shutil, sys, urllib.request as u
shutil.copyfileobj(u.urlopen(sys.argv[1], timeout=60), open(sys.argv[2], "wb"))' "$1" "$2" 2>/dev/null
    fi
}

# The two libraries of a wheel (an archive of the zip kind) into a folder; the rest is not needed.
unpack() {
    if has_command unzip; then
        unzip -q -j "$1" '*/libnvrtc.so.*' '*/libnvrtc-builtins.so.*' '*/[Ll][Ii][Cc][Ee][Nn][Ss][Ee]*' -d "$2"
    else
        python3 -c 'import os, re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in wheel.namelist():
    base = os.path.basename(name)
    if re.match(r"libnvrtc(-builtins)?\.so\.|license", base, re.I):
        open(os.path.join(sys.argv[2], base), "wb").write(wheel.read(name))' "$1" "$2"
    fi
}

# Programs that fetching needs; python3 serves for each.
install_tools() {
    local tools=()
    if has_command python3; then return 0; fi
    has_command curl || has_command wget || tools+=(curl ca-certificates)
    has_command unzip || tools+=(unzip)
    if [ ${#tools[@]} -eq 0 ]; then return 0; fi
    can_install && install_packages "${tools[@]}"
}

# Everything happens in a folder beside the final one, which then takes its name: who looks there
# finds all of it or nothing.
fetch_nvrtc() {
    local parent=${nvrtc_folder%/*} work=$1
    local wheel=$work/wheel.zip
    download "https://files.pythonhosted.org/packages/$nvrtc_path/$nvrtc_wheel" "$wheel" || return 1
    if ! echo "$nvrtc_sha256  $wheel" | sha256sum -c --status; then
        echo "NVRTC: the file fetched is not $nvrtc_wheel (wrong SHA-256); nothing is kept" >&2
        return 1
    fi
    mkdir -m 700 "$work/nvrtc"
    unpack "$wheel" "$work/nvrtc" || return 1
    chmod -R go-w "$work/nvrtc"
    compgen -G "$work/nvrtc/libnvrtc.so.*" >/dev/null || return 1
    compgen -G "$work/nvrtc/libnvrtc-builtins.so.*" >/dev/null || return 1
    rm -rf "$parent/nvrtc"
    mv -T "$work/nvrtc" "$parent/nvrtc"
}

not_fetched() {
    echo "NVRTC not found and not fetched: CUDA kernels are not compiled here; C kernels work"
    exit 0
}

if [ -n "$cache" ]; then tidy_cache; fi
if has_nvrtc; then exit 0; fi
if [ "${FPA_FETCH_NVRTC:-}" = no ] || [ -z "$nvrtc_path" ] || [ -z "$cache" ]; then not_fetched; fi
# 0700: the library keeps its cache there only when nobody else may write.
parent=${nvrtc_folder%/*}
mkdir -p "${parent%/*}" 2>/dev/null || not_fetched
[ -d "$parent" ] || mkdir -m 700 "$parent" 2>/dev/null || not_fetched
work=$(mktemp -d "$parent/.nvrtc-XXXXXX" 2>/dev/null) || not_fetched
trap 'rm -rf "$work"' EXIT
install_tools || not_fetched
echo "fetching NVIDIA's NVRTC $nvrtc_version (redistributable; its licence comes with it) from PyPI:" \
    "nvidia-cuda-nvrtc, to $nvrtc_folder"
fetch_nvrtc "$work" || not_fetched
