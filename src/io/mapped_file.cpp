// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.hpp"

#include "core/format.hpp"
#include "io/message.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace tileglu::io {
namespace {

Status system_error(const std::string& file, const char* action, int error) {
  return file_error(file, formatted("cannot {}: {}", action, std::generic_category().message(error)));
}

Result<MappedFile> map_descriptor(int descriptor, const std::string& file) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) return system_error(file, "stat", errno);
  if (S_ISDIR(info.st_mode)) return file_error(file, "is a folder, not a file");
  if (!S_ISREG(info.st_mode)) return file_error(file, "is not a regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return MappedFile{};  // mmap refuses length 0
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return system_error(file, "map", errno);
  return MappedFile{.bytes = {static_cast<const std::byte*>(address), size},
                    .owner = {address, [size](void* mapped) { munmap(mapped, size); }}};
}

// Value of a "key value" line of a pointer file; empty if absent.
std::string_view pointer_field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('\n'));
}

// The text file that Git LFS leaves in place of a file that was not fetched.
Status refuse_lfs_pointer(std::span<const std::byte> bytes, const std::string& file) {
  constexpr std::string_view kMark = "version https://git-lfs.github.com/spec/";
  constexpr std::size_t kLongestPointer = 1024;  // by the Git LFS specification
  if (bytes.size() > kLongestPointer) return {};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMark)) return {};
  return file_error(file, formatted("this is a Git LFS pointer, not the file itself: found {} bytes, expected {} bytes "
                                    "({}); fetch it with git lfs pull",
                                    bytes.size(), printable(pointer_field(text, "\nsize ")),
                                    printable(pointer_field(text, "\noid "))));
}

}  // namespace

Result<MappedFile> map_file(const std::filesystem::path& path) {
  const std::string file = display(path);
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error(file, "open", errno);
  Result<MappedFile> mapped = map_descriptor(descriptor, file);
  close(descriptor);
  if (!mapped.ok()) return mapped;
  TILEGLU_TRY(refuse_lfs_pointer(mapped.value().bytes, file));
  return mapped;
}

}  // namespace tileglu::io
