// SPDX-License-Identifier: Apache-2.0
// GoogleTest's main with one more flag: --calls N.
#include "abi/hostile.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  hostile_calls = argc == 3 && std::string(argv[1]) == "--calls" ? std::atoll(argv[2]) : 0;
  if (hostile_calls > 0) return RUN_ALL_TESTS();
  std::fprintf(stderr, "%s: --calls N (N > 0), and GoogleTest's own flags\n", argv[0]);
  return 2;
}
