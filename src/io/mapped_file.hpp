// SPDX-License-Identifier: Apache-2.0
// Whole files, read-only, through mmap.
#pragma once

#include "core/status.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace tileglu::io {

struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // unmaps

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Regular files only. Refuses a Git LFS pointer, whatever was expected in the file. A file that another process
// shortens while it is mapped ends this process with SIGBUS, as with every mmap: replace files by rename.
Result<MappedFile> map_file(const std::filesystem::path& path);

}  // namespace tileglu::io
