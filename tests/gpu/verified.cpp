// SPDX-License-Identifier: Apache-2.0
#include "verified.hpp"

#include "io/tensor.hpp"
#include "launch.hpp"
#include "runtime/runtime.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <tileglu/tileglu.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>

namespace tileglu::gpu {
namespace {

struct Findings {
  int cases = 0;
  Finding worst;
};
std::mutex mutex;

std::map<std::string, Findings>& findings() {
  static std::map<std::string, Findings> all;
  return all;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

nlohmann::json failed_tests(const testing::UnitTest& tests) {
  nlohmann::json names = nlohmann::json::array();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (test.result()->Failed()) names.push_back(std::string(suite.name()) + "." + test.name());
    }
  }
  return names;
}

// Empty, or why this run proves nothing. Whether all parts together prove everything, merge_verified.py says.
std::string shortfall(const testing::UnitTest& tests) {
  if (const Status gpu = runtime::cuda_status(); !gpu.ok()) return gpu.text();
  if (!tests.Passed() || tests.failed_test_count() > 0) return "tests failed";
  if (tests.skipped_test_count() > 0) return "tests were skipped";
  return {};
}

nlohmann::json names_of(const std::vector<Kernel>& kernels) {
  nlohmann::json names = nlohmann::json::array();
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

nlohmann::json document(const testing::UnitTest& tests, const std::string& sources_hash) {
  const Result<DeviceSpec> spec = runtime::device_spec(0);
  const std::string missing = shortfall(tests);
  nlohmann::json configs = nlohmann::json::object();
  for (const auto& [kernel, found] : findings()) {
    if (found.cases == 0) continue;
    configs[kernel] = {{"cases", found.cases},
                       {"worst_relative_frobenius", found.worst.relative_frobenius},
                       {"worst_ratio_to_eager", found.worst.ratio_to_eager}};
  }
  nlohmann::json result = {{"schema_version", 1},
                           {"verified", missing.empty()},
                           {"gpu", spec.ok() ? spec.value().name : "none"},
                           {"driver", runtime::driver_description()},
                           {"sources_hash", sources_hash},
                           {"build_info", tileglu_build_info()},
                           {"configs", configs},
                           {"kernels", names_of(sm90_kernels())},
                           {"tests_enabled", tests.total_test_count() - tests.disabled_test_count()},
                           // GoogleTest counts what it skips for want of a GPU as passed.
                           {"tests_passed", spec.ok() ? tests.successful_test_count() : 0},
                           {"tests_failed", tests.failed_test_count()},
                           {"failed", failed_tests(tests)},
                           {"date", today()}};
  if (!missing.empty()) result["reason"] = missing;
  return result;
}

class Recorder final : public testing::EmptyTestEventListener {
 public:
  Recorder(std::string path, std::string sources_hash)
      : path_(std::move(path)), sources_hash_(std::move(sources_hash)) {}

  void OnTestProgramEnd(const testing::UnitTest& tests) override {
    const nlohmann::json written = document(tests, sources_hash_);
    const Status status = io::write_text(path_, written.dump(2) + "\n");
    if (status.ok()) {
      std::printf("wrote %s (verified: %s)\n", path_.c_str(), written["verified"] ? "true" : "false");
      return;
    }
    std::fprintf(stderr, "tileglu_gpu_tests: --verified: %s\n", status.text().c_str());
    std::exit(1);
  }

 private:
  std::string path_, sources_hash_;
};

}  // namespace

void record(const std::string& kernel, const Finding& finding) {
  const std::lock_guard lock(mutex);
  Findings& found = findings()[kernel];
  ++found.cases;
  found.worst.relative_frobenius = std::max(found.worst.relative_frobenius, finding.relative_frobenius);
  found.worst.ratio_to_eager = std::max(found.worst.ratio_to_eager, finding.ratio_to_eager);
}

void write_record_at_end(const std::string& path, const std::string& sources_hash) {
  testing::UnitTest::GetInstance()->listeners().Append(new Recorder(path, sources_hash));
}

}  // namespace tileglu::gpu
