// SPDX-License-Identifier: Apache-2.0
// tileglu_random_cases [--seeds N] [--first SEED] [--memory host|cuda]: N random problems, from seed SEED on.
#include "op/random_cases.hpp"

#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>

namespace {

bool number(std::string_view text, unsigned& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size();
}

int run(unsigned first, unsigned seeds, tileglu::Memory memory) {
  int accepted = 0, refused = 0, failed = 0;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    const tileglu::test::RandomRun one = tileglu::test::run_random_case(seed, memory);
    accepted += one.accepted, refused += one.refused;
    for (const std::string& failure : one.failures) std::fprintf(stderr, "%s\n", failure.c_str());
    failed += static_cast<int>(one.failures.size());
  }
  std::printf("%u problems: %d results right, %d refusals by named kernels, %d wrong\n", seeds, accepted, refused,
              failed);
  return failed == 0 && accepted > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned first = 1, seeds = 100;
  tileglu::Memory memory = tileglu::Memory::kHost;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const bool known = (name == "--seeds" && number(value, seeds)) || (name == "--first" && number(value, first)) ||
                       (name == "--memory" && (value == "host" || value == "cuda"));
    if (!known) {
      std::fprintf(stderr, "%s=%s: --seeds N, --first SEED or --memory host|cuda\n", argv[i], value.data());
      return 2;
    }
    if (value == "cuda") memory = tileglu::Memory::kCuda;
  }
  try {
    return run(first, seeds, memory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
