// SPDX-License-Identifier: Apache-2.0
#include "io/tuning_cache.hpp"

#include "core/format.hpp"
#include "io/atomic_file.hpp"
#include "io/message.hpp"
#include "io/tuning_text.hpp"
#include "shipped_tuning.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>

namespace tileglu::io {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;  // some 70,000 rows
constexpr const char* kAbout = "measured by tileglu tune";

Status system_error(const std::filesystem::path& path, const char* action, int error) {
  return file_error(display(path), formatted("cannot {}: {}", action, std::generic_category().message(error)));
}

// A descriptor that closes itself, and with it gives up its lock.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Read and not mapped: a mapped file that another program cuts ends the process.
Result<std::string> read_small_file(const std::filesystem::path& path, int descriptor) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) return system_error(path, "stat", errno);
  if (!S_ISREG(info.st_mode)) return file_error(display(path), "is not a regular file");
  const auto too_large = [&] { return file_error(display(path), formatted("is over {} bytes", kMaxBytes)); };
  if (static_cast<std::size_t>(info.st_size) > kMaxBytes) return too_large();
  std::string text;
  char block[1 << 14];
  while (true) {
    const ssize_t count = read(descriptor, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read", errno);
    if (count == 0) return text;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > kMaxBytes) return too_large();
  }
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

void warn(const char* text) {
  std::fprintf(stderr, "tileglu: tuning cache ignored: %s\n", text);
}

TuningTable table_or_warning(const Result<TuningTable>& table) {
  if (table.ok()) return table.value();
  warn(table.status().text().c_str());
  return {};
}

std::shared_ptr<const Tuning> load() noexcept {
  try {
    Tuning tuning;
    tuning.shipped = table_or_warning(parse_tuning(kShippedTuning, "shipped table"));
    if (const auto path = tuning_cache_path(); !path.empty()) tuning.user = table_or_warning(read_tuning(path));
    return std::make_shared<const Tuning>(std::move(tuning));
  } catch (const std::exception& error) {
    warn(error.what());
    return nullptr;
  }
}

}  // namespace

std::filesystem::path tuning_cache_path() {
  constexpr const char* kFile = "tuning.json";
  if (const char* own = environment("TILEGLU_CACHE_DIR")) return std::filesystem::path(own) / kFile;
  // The XDG rules let a relative path count as none.
  if (const char* cache = environment("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::filesystem::path(cache) / "tileglu" / kFile;
  }
  if (const char* home = environment("HOME")) return std::filesystem::path(home) / ".cache/tileglu" / kFile;
  return {};
}

Result<TuningTable> read_tuning(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0)
    return errno == ENOENT ? Result<TuningTable>(TuningTable()) : system_error(path, "open", errno);
  const Result<std::string> text = read_small_file(path, file.number());
  if (!text.ok()) return text.status();
  return parse_tuning(text.value(), display(path));
}

Status add_tuning(const std::filesystem::path& path, const TuningTable& rows) {
  const std::filesystem::path lock_path = path.native() + ".lock";
  const Descriptor lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.number() < 0) return system_error(lock_path, "open", errno);
  while (flock(lock.number(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error(lock_path, "lock", errno);
  }
  Result<TuningTable> table = read_tuning(path);
  if (!table.ok()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return table.status();
    std::filesystem::rename(path, path.native() + ".bad", error);
    if (error) return system_error(path, "rename", error.value());
    table = TuningTable();
  }
  for (const auto& [key, tuned] : rows) table.value().insert_or_assign(key, tuned);
  const std::string text = tuning_text(table.value(), kAbout);
  return write_atomically(path, {std::as_bytes(std::span(text))});
}

const std::shared_ptr<const Tuning>& process_tuning() noexcept {
  static const std::shared_ptr<const Tuning> tuning = load();
  return tuning;
}

}  // namespace tileglu::io
