// SPDX-License-Identifier: Apache-2.0
// Tuning tables as JSON, the user's cache and the shipped table alike:
//
//   {"schema_version": 1, "about": "...", "rows": [
//   {"device":"NVIDIA H200","sm_count":132,"version":"0.1.0","dtype":"bf16","activation":"silu","layout":"separate",
//    "n":18944,"k":3584,"m":2048,"kernel":"paired_128x256_cooperative_c2x1","median_us":760.1},
//   ...
#pragma once

#include "core/status.hpp"
#include "plan/tuning.hpp"

#include <string>
#include <string_view>

namespace tileglu::io {

inline constexpr int kTuningSchema = 1;

// The whole table or the first fault in it: a wrong schema_version, a missing, unknown or ill-typed field, a number
// outside its range. `file` names the text in messages. Of rows in one bucket that with the largest m stands.
Result<TuningTable> parse_tuning(std::string_view text, const std::string& file);
// One row a line, in the order of the keys.
std::string tuning_text(const TuningTable& table, std::string_view about);

}  // namespace tileglu::io
