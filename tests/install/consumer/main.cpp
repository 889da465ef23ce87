// SPDX-License-Identifier: Apache-2.0
// A program of somebody else: C++ through find_package.
#include <tileglu/tileglu.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() try {
  tileglu::Problem problem;
  problem.dtype = TILEGLU_FP32;
  problem.activation = TILEGLU_SILU;
  problem.layout = TILEGLU_SEPARATE;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.m = problem.n = problem.k = 1;
  problem.alignment = 4;
  std::string reason;
  if (!tileglu::can_implement(problem, tileglu::Options(), &reason)) {
    std::printf("not here: %s", reason.c_str());
    return tileglu_can_implement(&problem, nullptr, nullptr, 0) == TILEGLU_NOT_AVAILABLE ? 0 : 1;
  }
  const tileglu::Plan plan(problem);
  const float a = 1, gate = 1, up = 2;
  float y = 0;
  std::vector<unsigned char> storage(plan.workspace() + 256);
  void* workspace = storage.data();
  std::size_t room = storage.size();
  std::align(256, plan.workspace(), workspace, room);
  tileglu::Args args;
  args.a = &a, args.gate = &gate, args.up = &up, args.y = &y;
  args.workspace = workspace, args.workspace_bytes = plan.workspace();
  plan.run(args);
  std::printf("%s: silu(1) * 2 = %.5f", plan.backend(), static_cast<double>(y));
  return std::fabs(y - 1.46212F) < 1e-5F ? 0 : 1;
} catch (const tileglu::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
