// SPDX-License-Identifier: Apache-2.0
// Text for messages about files. Names inside files are hostile input: they may hold line breaks, terminal escapes or
// megabytes, and a message is one line.
#pragma once

#include "core/status.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tileglu::io {

// Control characters and bytes that are not UTF-8 as \xNN; cut after about `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 200);
std::string quote(std::string_view text);                        // printable, in double quotes
std::string display(const std::filesystem::path& path);          // printable, not cut
std::string shape_text(const std::vector<std::int64_t>& shape);  // [2, 3]

// "FILE: TEXT"; every refusal of a file's content is an invalid argument.
Status file_error(const std::string& file, const std::string& text);
// "FILE: tensor "NAME": TEXT"
Status tensor_error(const std::string& file, std::string_view tensor, const std::string& text,
                    Code code = Code::kInvalidArgument);

}  // namespace tileglu::io
