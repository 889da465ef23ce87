#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiler launcher for nvcc: passes ptxas's report through only when it shows WGMMAs that are serialised or an ignored
# setmaxnreg (any C75xx), spills or a stack frame, and then fails the build.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" 2>"$log"
rc=$?
if [ $rc -eq 0 ] && grep -qE 'C75[0-9][0-9]|[1-9][0-9]* bytes (stack frame|spill)' "$log"; then
  echo "strict_ptxas: a kernel spills, uses local memory, or had its WGMMAs serialised:" >&2
  grep -E 'C75[0-9][0-9]|Compiling entry|Function properties|[1-9][0-9]* bytes (stack frame|spill)' "$log" >&2
  exit 1
fi
grep -vE 'ptxas info|bytes stack frame|^$' "$log" >&2
exit $rc
