// SPDX-License-Identifier: Apache-2.0
// Files to start fuzzing from: one right file of every kind and feature, and what earlier fuzzing found.
#pragma once

#include <string>
#include <vector>

namespace tileglu::fuzz {

std::vector<std::string> seeds();

}  // namespace tileglu::fuzz
