// SPDX-License-Identifier: Apache-2.0
#define FMT_HEADER_ONLY 1
#include "core/format.hpp"

#include <fmt/format.h>

namespace tileglu {

std::string format_erased(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

}  // namespace tileglu
