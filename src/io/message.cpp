// SPDX-License-Identifier: Apache-2.0
#include "io/message.hpp"

#include "core/format.hpp"

#include <algorithm>
#include <limits>

namespace tileglu::io {
namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 if it is none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

bool is_control(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  const bool c1 = lead == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;  // U+0080..U+009F
  return lead < 0x20 || lead == 0x7F || c1;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "...";
    const std::size_t valid = utf8_length(text);
    const std::size_t length = std::max<std::size_t>(valid, 1);
    const std::string_view sequence = text.substr(0, length);
    if (valid != 0 && !is_control(sequence)) {
      out += sequence;
    } else {
      for (const char c : sequence) out += formatted("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string quote(std::string_view text) {
  return '"' + printable(text) + '"';
}

std::string display(const std::filesystem::path& path) {
  return printable(path.native(), std::numeric_limits<std::size_t>::max());
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return formatted("[{}]", joined(shape));
}

Status file_error(const std::string& file, const std::string& text) {
  return {Code::kInvalidArgument, file + ": " + text};
}

Status tensor_error(const std::string& file, std::string_view tensor, const std::string& text, Code code) {
  return {code, formatted("{}: tensor {}: {}", file, quote(tensor), text)};
}

}  // namespace tileglu::io
