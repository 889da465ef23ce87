/* SPDX-License-Identifier: Apache-2.0
 * C: describe the problem, plan it once, run it. fp32 on host memory; on a GPU only `memory`, the pointers and `stream`
 * change. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tileglu/tileglu.h>

enum { TOKENS = 4, INTERMEDIATE = 48, HIDDEN = 64 };

static float x[TOKENS * HIDDEN], gate[INTERMEDIATE * HIDDEN], up[INTERMEDIATE * HIDDEN], y[TOKENS * INTERMEDIATE];

static void fill(float* values, int count, unsigned seed) {
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
  }
}

static double dot(const float* a, const float* b) {
  double sum = 0;
  for (int i = 0; i < HIDDEN; ++i) sum += (double)a[i] * b[i];
  return sum;
}

static int refused(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tileglu_last_error());
  return 1;
}

int main(void) {
  fill(x, TOKENS * HIDDEN, 1);
  fill(gate, INTERMEDIATE * HIDDEN, 2);
  fill(up, INTERMEDIATE * HIDDEN, 3);

  tileglu_problem problem = TILEGLU_PROBLEM_INIT;
  problem.dtype = TILEGLU_FP32;
  problem.activation = TILEGLU_SILU;
  problem.layout = TILEGLU_SEPARATE;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.alignment = sizeof(float); /* what the arrays above have for sure */
  problem.m = TOKENS, problem.n = INTERMEDIATE, problem.k = HIDDEN;

  tileglu_plan* plan;
  if (tileglu_plan_create(&problem, NULL, &plan) != TILEGLU_OK) return refused("plan");

  const size_t workspace = tileglu_plan_workspace(plan); /* owned by the caller, 256-byte aligned */
  tileglu_args args = TILEGLU_ARGS_INIT;
  args.a = x, args.gate = gate, args.up = up, args.y = y;
  args.workspace = workspace ? aligned_alloc(256, (workspace + 255) / 256 * 256) : NULL;
  args.workspace_bytes = workspace;
  if (tileglu_plan_run(plan, &args) != TILEGLU_OK) return refused("run");

  double worst = 0;
  for (int m = 0; m < TOKENS; ++m)
    for (int n = 0; n < INTERMEDIATE; ++n) {
      const double g = dot(x + m * HIDDEN, gate + n * HIDDEN), u = dot(x + m * HIDDEN, up + n * HIDDEN);
      worst = fmax(worst, fabs(y[m * INTERMEDIATE + n] - g / (1 + exp(-g)) * u));
    }
  printf("%s %s, largest error %.1e\n", tileglu_plan_backend(plan), tileglu_plan_kernel(plan), worst);
  free(args.workspace);
  tileglu_plan_destroy(plan);
  return worst < 1e-5 ? 0 : 1;
}
