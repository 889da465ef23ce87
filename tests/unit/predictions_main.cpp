// SPDX-License-Identifier: Apache-2.0
// Prints what the planner predicts for each sm90 kernel on an H200: a line "kernel m n k microseconds" for each of the
// shapes given as m,n,k.
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"

#include <cstdio>

int main(int count, char** shapes) {
  tileglu::DeviceSpec h200;
  h200.sm_count = 132;
  h200.sm_clock_khz = 1980000;
  for (int i = 1; i < count; ++i) {
    long long m = 0, n = 0, k = 0;
    if (std::sscanf(shapes[i], "%lld,%lld,%lld", &m, &n, &k) != 3) return 2;
    tileglu::Problem problem;
    problem.m = m, problem.n = n, problem.k = k;
    problem.lda = problem.ld_gate = problem.ld_up = k;
    problem.ldy = n;
    for (const tileglu::KernelConfig& config : tileglu::kSm90Configs) {
      const double us = tileglu::predict_us(config, problem, h200);
      std::printf("%s %lld %lld %lld %.9g\n", tileglu::config_name(config).c_str(), m, n, k, us);
    }
  }
}
