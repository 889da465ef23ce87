// SPDX-License-Identifier: Apache-2.0
// Writing a file so that it appears whole or not at all.
#pragma once

#include "core/status.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace tileglu::io {

// Writes the parts one after another to a new file in the folder of `path`, flushes it to disk, and renames it to
// `path`. On failure the new file is removed and an old one stays as it was. A symbolic link is followed. Refuses an
// existing `path` that is not a regular file (renaming over a device would replace it).
Status write_atomically(const std::filesystem::path& path, const std::vector<std::span<const std::byte>>& parts);

}  // namespace tileglu::io
