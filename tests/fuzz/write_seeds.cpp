// SPDX-License-Identifier: Apache-2.0
// write_seeds FOLDER: the seeds as files, for libFuzzer.
#include "seeds.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : tileglu::fuzz::seeds()) {
    std::ofstream stream(folder / ("seed_" + std::to_string(number++)), std::ios::binary);
    stream.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    if (!stream.flush()) return 1;
  }
  return 0;
}
