/* SPDX-License-Identifier: Apache-2.0
 * The C ABI from C11: every function, null arguments, hostile structs, m = 0, and one product computed on the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tileglu/tileglu.h>

static int failures = 0;

static void check(int holds, const char* text, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "c_api.c:%d: %s (last error: %s)\n", line, text, tileglu_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

static int mentions(const char* text, const char* part) {
  return strstr(text, part) != NULL;
}

enum { kM = 2, kN = 8, kK = 4 };

static tileglu_problem host_problem(void) {
  tileglu_problem p = TILEGLU_PROBLEM_INIT;
  p.dtype = TILEGLU_FP32;
  p.activation = TILEGLU_SILU;
  p.layout = TILEGLU_SEPARATE;
  p.memory = TILEGLU_MEMORY_HOST;
  p.m = kM;
  p.n = kN;
  p.k = kK;
  return p;
}

static void library_facts(void) {
  int i;
  CHECK(tileglu_version() == TILEGLU_VERSION);
  CHECK(mentions(tileglu_build_info(), "tileglu 0."));
  for (i = TILEGLU_OK; i <= TILEGLU_INTERNAL_ERROR; ++i) {
    CHECK(!mentions(tileglu_status_name((tileglu_status)i), "UNKNOWN"));
  }
  CHECK(strcmp(tileglu_status_name((tileglu_status)1234), "UNKNOWN_STATUS") == 0);
  CHECK(strcmp(tileglu_last_error(), "") == 0);
  CHECK(tileglu_kernel_name(TILEGLU_BACKEND_SM90, 0) != NULL);
  CHECK(tileglu_kernel_name(TILEGLU_BACKEND_SM90, 100000) == NULL);
  CHECK(tileglu_kernel_name(TILEGLU_BACKEND_SM90, -1) == NULL);
  CHECK(tileglu_kernel_name(TILEGLU_BACKEND_AUTO, 0) == NULL);
  CHECK(tileglu_kernel_name((tileglu_backend)-5, 0) == NULL);
  CHECK(tileglu_backend_available((tileglu_backend)77) == TILEGLU_INVALID_ARGUMENT);
  CHECK(mentions(tileglu_last_error(), "backend=77"));
}

static void null_arguments(void) {
  const tileglu_problem p = host_problem();
  const tileglu_args args = TILEGLU_ARGS_INIT;
  const tileglu_weights weights = TILEGLU_WEIGHTS_INIT;
  tileglu_plan* plan = (tileglu_plan*)&failures;
  tileglu_handle* handle = NULL;
  size_t bytes = 99;
  char reason[8];

  CHECK(tileglu_plan_create(NULL, NULL, &plan) == TILEGLU_INVALID_ARGUMENT);
  CHECK(plan == NULL);
  CHECK(mentions(tileglu_last_error(), "problem is NULL"));
  CHECK(tileglu_plan_create(&p, NULL, NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_plan_run(NULL, &args) == TILEGLU_INVALID_ARGUMENT);
  CHECK(strcmp(tileglu_plan_describe(NULL), "") == 0);
  CHECK(strcmp(tileglu_plan_backend(NULL), "") == 0);
  CHECK(strcmp(tileglu_plan_kernel(NULL), "") == 0);
  CHECK(tileglu_plan_workspace(NULL) == 0);
  tileglu_plan_destroy(NULL);
  tileglu_destroy(NULL);

  CHECK(tileglu_create(NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_create(&handle) == TILEGLU_OK);
  CHECK(tileglu_run(NULL, &p, NULL, &args) == TILEGLU_INVALID_ARGUMENT);
  CHECK(mentions(tileglu_last_error(), "handle is NULL"));
  CHECK(tileglu_run(handle, NULL, NULL, &args) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_workspace(handle, &p, NULL, NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_workspace(handle, NULL, NULL, &bytes) == TILEGLU_INVALID_ARGUMENT);
  CHECK(bytes == 0);
  tileglu_destroy(handle);

  CHECK(tileglu_relayout(NULL, &weights, &weights, NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_relayout(&p, NULL, &weights, NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_relayout(&p, &weights, NULL, NULL) == TILEGLU_INVALID_ARGUMENT);

  memset(reason, 'x', sizeof reason);
  CHECK(tileglu_can_implement(NULL, NULL, reason, sizeof reason) == TILEGLU_INVALID_ARGUMENT);
  CHECK(strcmp(reason, "problem") == 0); /* cut and terminated */
  CHECK(tileglu_can_implement(NULL, NULL, NULL, 100) == TILEGLU_INVALID_ARGUMENT);
  CHECK(tileglu_can_implement(NULL, NULL, reason, 0) == TILEGLU_INVALID_ARGUMENT);
}

static void hostile_structs(void) {
  struct {
    tileglu_problem problem;
    unsigned char later_fields[64];
  } newer;
  tileglu_problem p = host_problem();
  tileglu_plan* plan = NULL;

  p.struct_size = 0;
  CHECK(tileglu_plan_create(&p, NULL, &plan) == TILEGLU_INVALID_ARGUMENT);
  p.struct_size = 0xFFFFFFFFu;
  CHECK(tileglu_plan_create(&p, NULL, &plan) == TILEGLU_INVALID_ARGUMENT);
  CHECK(mentions(tileglu_last_error(), "struct_size=4294967295"));

  memset(&newer, 0, sizeof newer);
  newer.problem = host_problem();
  newer.problem.struct_size = sizeof newer;
  newer.problem.m = 0;
  CHECK(tileglu_can_implement(&newer.problem, NULL, NULL, 0) == TILEGLU_OK);
  newer.later_fields[40] = 1;
  CHECK(tileglu_can_implement(&newer.problem, NULL, NULL, 0) == TILEGLU_NOT_SUPPORTED);
}

static void no_tokens(void) {
  tileglu_problem p = host_problem();
  const tileglu_args args = TILEGLU_ARGS_INIT;
  tileglu_plan* plan = NULL;
  p.memory = TILEGLU_MEMORY_CUDA; /* even without a GPU: nothing is launched */
  p.m = 0;
  CHECK(tileglu_plan_create(&p, NULL, &plan) == TILEGLU_OK);
  CHECK(strcmp(tileglu_plan_backend(plan), "none") == 0);
  CHECK(mentions(tileglu_plan_describe(plan), "backend none"));
  CHECK(tileglu_plan_workspace(plan) == 0);
  CHECK(tileglu_plan_run(plan, &args) == TILEGLU_OK);
  CHECK(tileglu_plan_run(plan, NULL) == TILEGLU_INVALID_ARGUMENT);
  tileglu_plan_destroy(plan);
}

/* Gate rows and up rows differ, so that exchanging them shows (field case C26). */
static void fill(float a[kM][kK], float gate[kN][kK], float up[kN][kK]) {
  int i, j;
  for (i = 0; i < kM; ++i) {
    for (j = 0; j < kK; ++j) a[i][j] = 0.25f * (float)(i + 1) - 0.125f * (float)j;
  }
  for (i = 0; i < kN; ++i) {
    for (j = 0; j < kK; ++j) gate[i][j] = 0.5f - 0.125f * (float)((i * 3 + j) % 7), up[i][j] = 0.25f * (float)(i - j);
  }
}

static double expected(float a[kM][kK], float gate[kN][kK], float up[kN][kK], int row, int column) {
  double g = 0, u = 0;
  int j;
  for (j = 0; j < kK; ++j) {
    g += (double)a[row][j] * (double)gate[column][j];
    u += (double)a[row][j] * (double)up[column][j];
  }
  return g / (1 + exp(-g)) * u;
}

static void product_on_the_host(void) {
  _Alignas(64) float a[kM][kK], gate[kN][kK], up[kN][kK], y[kM + 1][kN];
  const tileglu_problem p = host_problem();
  tileglu_args args = TILEGLU_ARGS_INIT;
  tileglu_plan* plan = NULL;
  void* workspace = NULL;
  int i, j;
  const tileglu_status status = tileglu_plan_create(&p, NULL, &plan);
  if (status != TILEGLU_OK) {
    CHECK(status == TILEGLU_NOT_AVAILABLE);
    CHECK(plan == NULL);
    CHECK(tileglu_backend_available(TILEGLU_BACKEND_CPU) == TILEGLU_NOT_AVAILABLE);
    printf("no cpu backend here: %s\n", tileglu_last_error());
    return;
  }
  CHECK(strcmp(tileglu_plan_backend(plan), "cpu") == 0);
  fill(a, gate, up);
  memset(y, 0x7E, sizeof y);
  args.a = a;
  args.gate = gate;
  args.up = up;
  args.y = y;
  args.workspace_bytes = (tileglu_plan_workspace(plan) + 255) / 256 * 256;
  if (args.workspace_bytes > 0) args.workspace = workspace = aligned_alloc(256, args.workspace_bytes);

  args.y = a; /* refused, and nothing is written */
  CHECK(tileglu_plan_run(plan, &args) == TILEGLU_INVALID_ARGUMENT);
  CHECK(mentions(tileglu_last_error(), "overlaps a="));
  args.y = y;
  CHECK(tileglu_plan_run(plan, &args) == TILEGLU_OK);
  for (i = 0; i < kM; ++i) {
    for (j = 0; j < kN; ++j) {
      const double right = expected(a, gate, up, i, j);
      CHECK(fabs((double)y[i][j] - right) <= 1e-6 * (fabs(right) + 1e-3));
    }
  }
  for (i = 0; i < (int)sizeof y[kM]; ++i) CHECK(((const unsigned char*)y[kM])[i] == 0x7E);
  free(workspace);
  tileglu_plan_destroy(plan);
}

static void empty_sums_on_the_host(void) {
  tileglu_problem p = host_problem();
  tileglu_args args = TILEGLU_ARGS_INIT;
  tileglu_handle* handle = NULL;
  _Alignas(64) float y[kM][kN];
  int i;
  memset(y, 0x7E, sizeof y);
  p.k = 0;
  args.y = y;
  CHECK(tileglu_create(&handle) == TILEGLU_OK);
  CHECK(tileglu_run(handle, &p, NULL, &args) == TILEGLU_OK);
  for (i = 0; i < kM * kN; ++i) CHECK(y[i / kN][i % kN] == 0.0f);
  tileglu_destroy(handle);
}

static void weights_there_and_back(void) {
  float a[kM][kK], gate[kN][kK], up[kN][kK], packed[2 * kN][kK], gate_again[kN][kK], up_again[kN][kK];
  const tileglu_problem p = host_problem();
  tileglu_weights apart = TILEGLU_WEIGHTS_INIT, together = TILEGLU_WEIGHTS_INIT;
  fill(a, gate, up);
  apart.layout = TILEGLU_SEPARATE;
  apart.gate = gate;
  apart.up = up;
  together.layout = TILEGLU_INTERLEAVED_1;
  together.gate = packed;
  CHECK(tileglu_relayout(&p, &apart, &together, NULL) == TILEGLU_OK);
  CHECK(memcmp(packed[0], gate[0], sizeof gate[0]) == 0);
  CHECK(memcmp(packed[1], up[0], sizeof up[0]) == 0);
  CHECK(memcmp(packed[2 * kN - 1], up[kN - 1], sizeof up[0]) == 0);
  apart.gate = gate_again;
  apart.up = up_again;
  CHECK(tileglu_relayout(&p, &together, &apart, NULL) == TILEGLU_OK);
  CHECK(memcmp(gate_again, gate, sizeof gate) == 0);
  CHECK(memcmp(up_again, up, sizeof up) == 0);
  CHECK(tileglu_relayout(&p, &together, &together, NULL) == TILEGLU_INVALID_ARGUMENT);
  CHECK(mentions(tileglu_last_error(), "overlaps"));
}

int main(void) {
  library_facts();
  null_arguments();
  hostile_structs();
  no_tokens();
  product_on_the_host();
  empty_sums_on_the_host();
  weights_there_and_back();
  if (failures == 0) puts("c_api: all checks hold");
  return failures == 0 ? 0 : 1;
}
