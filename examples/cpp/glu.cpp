// SPDX-License-Identifier: Apache-2.0
// C++: a handle that plans each new problem once; errors are exceptions. Merged weights, gate rows first, with a token
// count that changes from step to step as in serving.
#include <tileglu/tileglu.hpp>

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

namespace {

constexpr int kIntermediate = 48, kHidden = 64;

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator) / 8;
  return values;
}

double dot(const float* a, const float* b) {
  double sum = 0;
  for (int i = 0; i < kHidden; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

int main() try {
  const tileglu::Handle handle;
  tileglu::Problem problem;
  problem.dtype = TILEGLU_FP32;
  problem.activation = TILEGLU_SILU;
  problem.layout = TILEGLU_GATE_UP;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.alignment = alignof(float);
  problem.n = kIntermediate, problem.k = kHidden;

  const auto gate_up = random_values(2 * kIntermediate * kHidden, 1);
  double worst = 0;
  for (const int tokens : {17, 1, 1, 2}) {
    const auto x = random_values(std::size_t(tokens) * kHidden, 2);
    std::vector<float> y(std::size_t(tokens) * kIntermediate);
    problem.m = tokens;
    std::vector<unsigned char> storage(handle.workspace(problem) + 256);
    std::size_t room = storage.size();
    tileglu::Args args;
    args.a = x.data(), args.gate = gate_up.data(), args.y = y.data();
    args.workspace = storage.data();
    std::align(256, storage.size() - 256, args.workspace, room);
    args.workspace_bytes = room;
    handle.run(problem, args);
    for (int m = 0; m < tokens; ++m) {
      for (int n = 0; n < kIntermediate; ++n) {
        const double g = dot(&x[m * kHidden], &gate_up[n * kHidden]);
        const double u = dot(&x[m * kHidden], &gate_up[(kIntermediate + n) * kHidden]);
        worst = std::fmax(worst, std::fabs(double{y[m * kIntermediate + n]} - g / (1 + std::exp(-g)) * u));
      }
    }
  }
  std::printf("largest error %.1e\n", worst);

  problem.lda = kHidden / 2;  // a refusal says which value broke which rule
  std::string reason;
  if (!tileglu::can_implement(problem, tileglu::Options(), &reason)) std::printf("refused: %s\n", reason.c_str());
  return worst < 1e-5 && !reason.empty() ? 0 : 1;
} catch (const tileglu::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
