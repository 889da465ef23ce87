// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning.hpp"

#include "core/format.hpp"
#include "plan/device_spec.hpp"

namespace tileglu {

std::int64_t m_bucket(std::int64_t m) {
  const std::int64_t step = m <= 8 ? 1 : m <= 256 ? 8 : m <= 1024 ? 32 : 128;
  return (m + step - 1) / step * step;
}

std::string library_version() {
  return formatted("{}.{}.{}", TILEGLU_VERSION_MAJOR, TILEGLU_VERSION_MINOR, TILEGLU_VERSION_PATCH);
}

TuningKey tuning_key(const Problem& problem, const DeviceSpec& device) {
  return {.device = device.name,
          .sm_count = device.sm_count,
          .version = library_version(),
          .dtype = problem.dtype,
          .activation = problem.activation,
          .layout = problem.layout,
          .n = problem.n,
          .k = problem.k,
          .m_bucket = m_bucket(problem.m)};
}

TuningKey resembling(TuningKey key) {
  key.dtype = Dtype::kBf16;
  key.activation = Activation::kSilu;
  key.layout = Layout::kSeparate;
  return key;
}

}  // namespace tileglu
