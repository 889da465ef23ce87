# shellcheck shell=bash disable=SC2034,SC2154  # read by ./dev, which sets root and uses the variables
# SPDX-License-Identifier: Apache-2.0
# What ./dev needs from outside: Debian packages, a Python environment, the CUTLASS headers; and its messages.

build_packages=(g++ cmake ninja-build git libfmt-dev nlohmann-json3-dev libcli11-dev libdnnl-dev python3 python3-venv)
test_packages=(libgtest-dev pkg-config clang libclang-rt-dev doxygen)
lint_packages=(clang-format clang-tidy shellcheck)

jobs=$(nproc)
python=$root/.venv/bin/python
logs=.cache/logs

stage() {
  printf '== %s\n' "$*"
}

die() {
  printf 'dev: %s\n' "$1" >&2
  exit "${2-1}"
}

# logged NAME COMMAND: output goes to .cache/logs/NAME.log, its end to the terminal if the command fails
logged() {
  local log=$logs/$1.log rc=0
  mkdir -p "$logs"
  "${@:2}" >"$log" 2>&1 || rc=$?
  if ((rc != 0)); then
    tail -n 60 "$log" >&2
    printf '(end of %s; exit code %d)\n' "$log" "$rc" >&2
  fi
  return "$rc"
}

# install_packages NAMES: by apt, only those that are missing
install_packages() {
  local package installed missing=() as_root=()
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake says what it cannot find
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "these packages are missing and only root can install them: ${missing[*]}" 2
    as_root=(sudo)
    [[ -t 0 ]] || as_root=(sudo -n)
  fi
  stage "installing ${missing[*]}"
  logged apt "${as_root[@]}" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"' sh "${missing[@]}" </dev/null ||
    die "apt-get could not install: ${missing[*]}" 2
}

# Chromium, which the test of the study's page opens it in; that test is skipped where it cannot be had
browser() {
  command -v chromium >/dev/null || (install_packages chromium) || {
    stage "Chromium cannot be had: going on without the test of the study's page"
    return 1
  }
}

# .venv with the packages of scripts/requirements.txt; made anew when that file changes
python_environment() {
  local wanted=scripts/requirements.txt stamp=.venv/requirements.txt
  if cmp -s $wanted $stamp && "$python" -c pass 2>/dev/null; then
    return
  fi
  stage "Python packages into .venv"
  rm -rf .venv
  logged venv python3 -m venv .venv || die "python3 cannot make a virtual environment" 2
  logged pip "$python" -m pip install -q --disable-pip-version-check --no-deps -r $wanted ||
    die "pip could not install the packages of $wanted" 2
  cp $wanted $stamp
}

# JAX into .venv, for the handlers of tileglu.jax and their tests; fails if it cannot be had
jax_environment() {
  local wanted=scripts/requirements-jax.txt stamp=.venv/requirements-jax.txt
  if cmp -s $wanted $stamp; then
    return
  fi
  stage "JAX into .venv"
  if logged pip-jax "$python" -m pip install -q --disable-pip-version-check --no-deps -r $wanted; then
    cp $wanted $stamp
  else
    stage "JAX cannot be had: going on without tileglu.jax"
    return 1
  fi
}

# download FOLDER REQUIREMENTS: quiet, since the caller has a way to go on without
download() {
  mkdir -p "$logs"
  "$python" -m pip download -q --disable-pip-version-check --no-deps -d "$1" -r "$2" >"$logs/download.log" 2>&1
}

find_nvcc() {
  [[ -n ${CUDACXX-} ]] || command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]
}

# Whether CUDA can be compiled here: nvcc, and the CUTLASS headers from CUTLASS_DIR, an installed CMake config, or the
# pinned package, unpacked into .cache/cutlass where cmake/Dependencies.cmake looks.
cuda_ready() {
  find_nvcc || return 1
  if [[ -n ${CUTLASS_DIR-} || -f .cache/cutlass/include/cutlass/version.h ]] || cmake --find-package \
    -DNAME=NvidiaCutlass -DCOMPILER_ID=GNU -DLANGUAGE=CXX -DMODE=EXIST -DQUIET=TRUE >/dev/null 2>&1; then
    return
  fi
  stage "CUTLASS headers into .cache/cutlass"
  python_environment
  rm -rf .cache/cutlass .cache/cutlass.new
  if download .cache/cutlass.new scripts/requirements-cuda.txt && unpack_cutlass; then
    return
  fi
  rm -rf .cache/cutlass.new
  stage "the package nvidia-cutlass cannot be had: building without CUDA (set CUTLASS_DIR to a CUTLASS 4.2 tree)"
  return 1
}

unpack_cutlass() {
  "$python" - <<'PYTHON' && mv .cache/cutlass.new/cutlass_library/source .cache/cutlass && rm -rf .cache/cutlass.new
import glob, zipfile
with zipfile.ZipFile(glob.glob(".cache/cutlass.new/*.whl")[0]) as wheel:
    wheel.extractall(".cache/cutlass.new", [n for n in wheel.namelist() if n.startswith("cutlass_library/source/include/")])
PYTHON
}

# Name of the first Hopper GPU; fails if there is none
gpu_name() {
  local smi names
  smi=$(command -v nvidia-smi || ls /usr/local/nvidia/bin/nvidia-smi 2>/dev/null) || return 1
  names=$("$smi" --query-gpu=compute_cap,name --format=csv,noheader 2>/dev/null | sed -n 's/^9\.0, *//p') || return 1
  [[ -n $names ]] && printf '%s\n' "${names%%$'\n'*}"
}
