// SPDX-License-Identifier: Apache-2.0
// Texts with values, by fmt. The formatting itself is compiled once (format.cpp): fmt's header-only form costs every
// file that uses it 7 s (15 s under the sanitizers), its type-erased front half a second.
#pragma once

#include <fmt/core.h>

#include <string>

namespace tileglu {

std::string format_erased(fmt::string_view text, fmt::format_args values);

// fmt::format: replacement fields are checked against the values' types at compile time.
template <class... Values>
std::string formatted(fmt::format_string<Values...> text, Values&&... values) {
  return format_erased(text, fmt::make_format_args(values...));
}

// The elements with ", " between them.
template <class Range>
std::string joined(const Range& range) {
  std::string text;
  const char* separator = "";
  for (const auto& element : range) {
    text += separator + formatted("{}", element);
    separator = ", ";
  }
  return text;
}

}  // namespace tileglu
