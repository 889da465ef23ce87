// SPDX-License-Identifier: Apache-2.0
// How many calls hostile_test.cpp makes in all its tests together; set by the flag of hostile_main.cpp.
#pragma once

#include <cstdint>

extern std::int64_t hostile_calls;
