/* SPDX-License-Identifier: Apache-2.0
 * A program of somebody else: C through pkg-config. */
#include <stdio.h>
#include <tileglu/tileglu.h>

int main(void) {
  tileglu_problem problem = TILEGLU_PROBLEM_INIT;
  char reason[256];
  if (tileglu_version() != TILEGLU_VERSION) return 1;
  if (tileglu_can_implement(&problem, NULL, reason, sizeof reason) != TILEGLU_INVALID_ARGUMENT) return 1;
  printf("%s; %s", tileglu_build_info(), reason);
  return 0;
}
