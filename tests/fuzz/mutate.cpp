// SPDX-License-Identifier: Apache-2.0
// mutate SECONDS: stands in for libFuzzer where clang is missing. Mutates the seeds at random, without coverage
// feedback; on a crash the sanitizer's report is followed by the number that repeats it: mutate SECONDS FIRST_NUMBER.
#include "seeds.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

std::uint64_t current = 0;  // number of the input, from which it is made alone

void report() {
  std::fprintf(stderr, "input %llu\n", static_cast<unsigned long long>(current));
}

std::string mutated(const std::vector<std::string>& seeds, std::mt19937_64& random) {
  static const char* const kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "-",
                                        "0",
                                        "1e9",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "null",
                                        "\"a\"",
                                        "\"shape\"",
                                        "\"F32\"",
                                        "../",
                                        "\\u0000"};
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  std::string input = seeds[below(seeds.size())];
  for (std::size_t round = 1 + below(8); round > 0; --round) {
    const std::size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0: input.insert(at, kTokens[below(std::size(kTokens))]); break;
      case 1: input.erase(at, 1 + below(8)); break;
      case 2: input.resize(at); break;
      case 3: input.insert(at, input.substr(below(input.size() + 1), below(40))); break;
      case 4: input.replace(at, at < input.size() ? 1 : 0, 1, static_cast<char>(random())); break;
      default: input += seeds[below(seeds.size())].substr(0, below(60)); break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  current = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  __sanitizer_set_death_callback(report);
  std::signal(SIGABRT, [](int) { report(); });
  const std::vector<std::string> seeds = tileglu::fuzz::seeds();
  for (const std::string& seed : seeds) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size());
  }
  for (; std::chrono::steady_clock::now() < end; ++current) {
    std::mt19937_64 random(current);
    const std::string input = mutated(seeds, random);
    // An exact copy on the heap, so that reading one byte past the end is seen.
    const std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[input.size()]);
    std::memcpy(copy.get(), input.data(), input.size());
    LLVMFuzzerTestOneInput(copy.get(), input.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(current));
  return 0;
}
