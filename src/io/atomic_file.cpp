// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.hpp"

#include "core/format.hpp"
#include "io/message.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace tileglu::io {
namespace {

constexpr int kNameTries = 1000;

// A file under a name of its own, removed again unless publish() has renamed it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder) {
    static std::atomic<unsigned> counter = 0;
    for (int i = 0; i < kNameTries; ++i) {
      path_ = folder / formatted(".tileglu-{}-{}.tmp", getpid(), counter++);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);  // less the umask
      if (descriptor_ >= 0 || errno != EEXIST) return;
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (created() && !published_) unlink(path_.c_str());
  }

  bool created() const { return descriptor_ >= 0 || closed_; }

  // Each returns 0 or errno.
  int write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
  }
  int flush() {
    const int sync_error = fsync(descriptor_) == 0 ? 0 : errno;
    const int close_error = close(descriptor_) == 0 ? 0 : errno;  // some file systems report a full disk only here
    descriptor_ = -1;
    closed_ = true;
    return sync_error != 0 ? sync_error : close_error;
  }
  int publish(const std::filesystem::path& target) {
    published_ = std::rename(path_.c_str(), target.c_str()) == 0;
    return published_ ? 0 : errno;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool closed_ = false;
  bool published_ = false;
};

}  // namespace

Status write_atomically(const std::filesystem::path& path, const std::vector<std::span<const std::byte>>& parts) {
  const std::string file = display(path);
  std::size_t total = 0;
  for (const auto& part : parts) total += part.size();
  const auto failure = [&](int error) {
    return file_error(file, formatted("cannot write {} bytes: {}", total, std::generic_category().message(error)));
  };

  std::error_code error;
  std::filesystem::path target = path;
  const auto type = std::filesystem::status(path, error).type();
  switch (type) {
    case std::filesystem::file_type::not_found: break;
    case std::filesystem::file_type::regular: target = std::filesystem::canonical(path, error); break;
    case std::filesystem::file_type::directory: return file_error(file, "cannot write: is a folder");
    case std::filesystem::file_type::none: return failure(error.value());
    default: return file_error(file, "cannot write: exists and is not a regular file");
  }
  if (target.filename().empty()) return file_error(file, "cannot write: not a file name");

  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  TemporaryFile temporary(folder);
  if (!temporary.created()) return failure(errno);
  for (const auto& part : parts) {
    if (const int failed = temporary.write(part); failed != 0) return failure(failed);
  }
  if (const int failed = temporary.flush(); failed != 0) return failure(failed);
  if (const int failed = temporary.publish(target); failed != 0) return failure(failed);
  return {};
}

}  // namespace tileglu::io
