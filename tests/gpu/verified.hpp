// SPDX-License-Identifier: Apache-2.0
// The record of a test run: what each kernel was found to do, and a JSON file that says so (--verified=FILE).
#pragma once

#include <string>

namespace tileglu::gpu {

struct Finding {
  double relative_frobenius = 0;
  double ratio_to_eager = 0;  // 0: not compared
};
void record(const std::string& kernel, const Finding& finding);

// Adds a listener that writes `path` when all tests are done. verified is true only if every test of the program ran
// and passed and every sm90 kernel was checked.
void write_record_at_end(const std::string& path, const std::string& sources_hash);

}  // namespace tileglu::gpu
