#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints one SHA-256 over the files that decide what the GPU kernels compute: names and contents, independent of git,
# locale and where the tree lies. benchmarks/*/verified.json carries it. --list prints the files.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The one list. Headers of core/ are compiled into the kernels; its .cpp files, the planner and the tests are not.
paths=(
  cmake/CompileOptions.cmake
  scripts/requirements-cuda.txt
  src/backends/cublas
  src/backends/sm90
  src/core/*.hpp
  src/pack/*.cu
  src/plan/kernel_config.*
  src/plan/sm90_configs.*
  src/plan/work_split.hpp
  src/runtime/cuda.cpp
  src/runtime/device_guard.hpp
)

for path in "${paths[@]}"; do
  [[ -e $path ]] || { echo "sources_hash: $path is missing" >&2; exit 1; }
done
mapfile -t files < <(find "${paths[@]}" -type f \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' -o -name '*.txt' -o -name '*.cmake' \) | sort)
if [[ ${1-} == --list ]]; then
  printf '%s\n' "${files[@]}"
else
  sha256sum -- "${files[@]}" | sha256sum | cut -d ' ' -f 1
fi
