// SPDX-License-Identifier: Apache-2.0
// A file appears whole or not at all, and nothing else is left in its folder.
#include "io/atomic_file.hpp"

#include "io/files.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>

namespace tileglu::io {
namespace {

using test::as_span;
using test::expect_refused;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

TEST(AtomicFile, WritesAndReplaces) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_atomically(folder / "out", {as_span("one"), as_span(""), as_span("two")}).ok());
  EXPECT_EQ(read_file(folder / "out"), "onetwo");
  ASSERT_TRUE(write_atomically(folder / "out", {as_span("3")}).ok());
  EXPECT_EQ(read_file(folder / "out"), "3");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"out"}));
}

TEST(AtomicFile, WritesToTheCurrentFolder) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Status status = write_text("plain.txt", "text");
  std::filesystem::current_path(before);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(read_file(folder / "plain.txt"), "text");
}

TEST(AtomicFile, RespectsTheUmask) {
  const TemporaryFolder folder;
  for (const mode_t mask : {0022U, 0077U}) {
    const mode_t before = umask(mask);
    const Status status = write_text(folder / "out", "x");
    umask(before);
    ASSERT_TRUE(status.ok()) << status.text();
    struct stat info = {};
    ASSERT_EQ(stat((folder / "out").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0666U & ~mask);
  }
}

TEST(AtomicFile, FollowsASymbolicLink) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  write_file(folder / "elsewhere" / "real", "old");
  std::filesystem::create_symlink(folder / "elsewhere" / "real", folder / "link");
  ASSERT_TRUE(write_text(folder / "link", "new").ok());
  EXPECT_EQ(read_file(folder / "elsewhere" / "real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(AtomicFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  expect_refused(write_text(folder.path(), "x"), {folder.path().string(), "is a folder"});
  expect_refused(write_text("/dev/full", "x"), {"/dev/full", "not a regular file"});
  expect_refused(write_text(folder / "absent" / "out", "x"), {"absent/out", "cannot write 1 bytes", "No such file"});
  expect_refused(write_text(folder / "new/", "x"), {"new/", "not a file name"});
  write_file(folder / "file", "");
  expect_refused(write_text(folder / "file" / "out", "x"), {"file/out", "Not a directory"});
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"file"}));
}

// Writes fail past this many bytes, as on a full disk: first short, then with an error.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, FailedWriteLeavesTheOldFileAndNoOther) {
  const TemporaryFolder folder;
  write_file(folder / "out", "old");
  Status status;
  {
    const FileSizeLimit limit(1000);
    status = write_atomically(folder / "out", {as_span(std::string(700, 'a')), as_span(std::string(800, 'b'))});
  }
  expect_refused(status, {(folder / "out").string(), "cannot write 1500 bytes", "File too large"});
  EXPECT_EQ(read_file(folder / "out"), "old");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"out"}));
}

TEST(AtomicFile, FailedTensorsLeaveNothing) {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> values(5000);
  const TensorSource source{
      .name = "y", .dtype = Dtype::kBf16, .shape = {50, 100}, .data = values.data(), .bytes = 10000};
  Status status;
  {
    const FileSizeLimit limit(4096);
    status = write_tensors(folder / "y.safetensors", {source});
  }
  expect_refused(status, {"y.safetensors", "cannot write 10072 bytes"});
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, WritersAtOnceLeaveOneWholeFile) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string text(100000, static_cast<char>('a' + i));
      for (int round = 0; round < 5; ++round) EXPECT_TRUE(write_text(folder / "out", text).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = read_file(folder / "out");
  ASSERT_EQ(text.size(), 100000U);
  EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"out"}));
}

}  // namespace
}  // namespace tileglu::io
