// SPDX-License-Identifier: Apache-2.0
// tileglu_gpu_tests [--verified=FILE --sources-hash=HASH] [GoogleTest options]; ./dev gpu-test calls it. Without a GPU
// all tests are skipped.
#include "runtime/runtime.hpp"
#include "verified.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

class NeedsGpu final : public testing::Environment {
 public:
  void SetUp() override {
    const tileglu::Status status = tileglu::runtime::cuda_status();
    if (!status.ok()) GTEST_SKIP() << status.text();
    std::printf("%d GPU(s), %s, %s\n", tileglu::runtime::device_count(),
                tileglu::runtime::device_spec(0).value().name.c_str(), tileglu::runtime::driver_description().c_str());
  }
};

// Whether `argument` is "--name=value"; then sets value.
bool take(std::string_view argument, std::string_view name, std::string& value) {
  if (!argument.starts_with(name) || argument.substr(name.size(), 1) != "=") return false;
  value = argument.substr(name.size() + 1);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("TILEGLU_CACHE_DIR", "/nonexistent", 1);  // what this user tuned must not decide what is tested
  std::string verified, sources_hash;
  for (int i = 1; i < argc; ++i) {
    if (take(argv[i], "--verified", verified) || take(argv[i], "--sources-hash", sources_hash)) continue;
    std::fprintf(stderr, "tileglu_gpu_tests: unknown argument %s\n", argv[i]);
    return 2;
  }
  if (verified.empty() != sources_hash.empty()) {
    std::fprintf(stderr, "tileglu_gpu_tests: --verified and --sources-hash go together\n");
    return 2;
  }
  testing::AddGlobalTestEnvironment(new NeedsGpu);
  if (!verified.empty()) tileglu::gpu::write_record_at_end(verified, sources_hash);
  return RUN_ALL_TESTS();
}
