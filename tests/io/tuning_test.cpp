// SPDX-License-Identifier: Apache-2.0
// Tuning tables as files: what is written is read again, what is bad is named and never more than a warning.
#include "core/format.hpp"
#include "io/files.hpp"
#include "io/message.hpp"
#include "io/tuning_cache.hpp"
#include "io/tuning_text.hpp"
#include "plan/device_spec.hpp"
#include "plan/planner.hpp"
#include "shipped_tuning.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace tileglu::io {
namespace {

using test::expect_refused;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

TuningTable one_row(std::int64_t m, const std::string& kernel = "paired_128x128_pingpong_c1x1", double us = 12.5) {
  const TuningKey key{.device = "NVIDIA H200",
                      .sm_count = 132,
                      .version = library_version(),
                      .n = 4864,
                      .k = 896,
                      .m_bucket = m_bucket(m)};
  return {{key, {.kernel = kernel, .m = m, .median_us = us}}};
}

constexpr const char* kRow =
    R"({"device":"NVIDIA H200","sm_count":132,"version":"0.1.0","dtype":"bf16","activation":"silu","layout":"separate",)"
    R"("n":4864,"k":896,"m":512,"kernel":"paired","median_us":12.5})";

std::string with_rows(const std::string& rows) {
  return R"({"schema_version": 1, "rows": [)" + rows + "]}";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// --- Text -----------------------------------------------------------------------------------------------------------

TEST(TuningText, IsReadAgain) {
  TuningTable table = one_row(1);
  table.merge(one_row(512, "a\"b\\c\n\xC3\xA9"));
  TuningKey other = table.begin()->first;
  other.dtype = Dtype::kFp16, other.activation = Activation::kGeluTanh, other.layout = Layout::kInterleaved8;
  table[other] = {.kernel = "k", .m = 1, .median_us = 0.001};
  const std::string text = tuning_text(table, "made \"here\"");
  const Result<TuningTable> again = parse_tuning(text, "t");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again.value(), table);
  EXPECT_EQ(tuning_text(again.value(), "made \"here\""), text);
  EXPECT_EQ(parse_tuning(tuning_text({}, ""), "t").value(), TuningTable());
}

TEST(TuningText, LargestMOfABucketStands) {
  const std::string low = replaced(kRow, "512", "500"), high = kRow;
  for (const std::string& rows : {low + "," + high, high + "," + low}) {
    const Result<TuningTable> table = parse_tuning(with_rows(rows), "t");
    ASSERT_TRUE(table.ok()) << table.status().text();
    ASSERT_EQ(table.value().size(), 1U);
    EXPECT_EQ(table.value().begin()->second.m, 512);
  }
}

struct Bad {
  std::string text, named;
};

std::vector<Bad> bad_tables() {
  const std::string row = kRow;
  const auto spoiled = [&](const std::string& from, const std::string& to, const std::string& named) {
    return Bad{with_rows(replaced(row, from, to)), named};
  };
  return {{"", "not a JSON object"},
          {"[]", "not a JSON object"},
          {"null", "not a JSON object"},
          {"{", "not valid JSON"},
          {std::string("{\0}", 3), "NUL"},
          {"{}", "schema_version is missing"},
          {R"({"schema_version": 2, "rows": []})", "schema_version is 2, not 1"},
          {R"({"schema_version": "1", "rows": []})", "schema_version"},
          {R"({"schema_version": 1.0, "rows": []})", "schema_version"},
          {R"({"schema_version": {"a": "\u001b[31m\n"}, "rows": []})", "schema_version"},
          {R"({"schema_version": 1})", "rows"},
          {R"({"schema_version": 1, "rows": {}})", "rows is not a list"},
          {R"({"schema_version": 1, "rows": [], "extra\n": 1})", "unknown field \"extra\\x0a\""},
          {R"({"schema_version": 1, "rows": [], "about": 1})", "about"},
          {R"({"schema_version": 1, "schema_version": 1, "rows": []})", "twice"},
          {with_rows("1"), "row 0: is not an object"},
          {with_rows(row + ",{}"), "row 1: lacks m"},
          {with_rows(row) + "x", "not valid JSON"},
          {with_rows(std::string(100, '[') + std::string(100, ']')), "nests deeper"},
          spoiled(R"("m":512,)", "", "lacks m"),
          spoiled(R"("m":512)", R"("m":512,"extra":1)", "12 fields"),
          spoiled("512", "0", "m is not from 1"),
          spoiled("512", "-512", "m is not from 1"),
          spoiled("512", "512.0", "m is not an integer"),
          spoiled("512", "\"512\"", "m is not an integer"),
          spoiled("512", "18446744073709551615", "m is not from 1"),
          spoiled("512", "99999999999999999999999", "m is not an integer"),
          spoiled("512", "1e999", "not valid JSON"),
          spoiled("132", "null", "sm_count is not an integer"),
          spoiled("132", "true", "sm_count is not an integer"),
          spoiled("12.5", "0", "median_us"),
          spoiled("12.5", "-1", "median_us"),
          spoiled("12.5", "\"fast\"", "median_us is not a number"),
          spoiled("bf16", "fp8", "dtype is \"fp8\""),
          spoiled("silu", "\\u001b[2J", "activation is \"\\x1b[2J\""),
          spoiled("\"separate\"", "3", "layout is not a string"),
          spoiled("\"paired\"", "\"\"", "kernel"),
          spoiled("\"paired\"", "\"" + std::string(300, 'x') + "\"", "kernel"),
          spoiled("\"paired\"", "[\"paired\"]", "kernel is not a string")};
}

TEST(TuningText, BadTablesAreRefusedInOneLine) {
  for (const Bad& bad : bad_tables()) {
    const Result<TuningTable> table = parse_tuning(bad.text, "tables/t.json");
    ASSERT_FALSE(table.ok()) << bad.text;
    expect_refused(table.status(), {"tables/t.json", bad.named});
  }
}

// Every prefix of a good file, and the file with each byte changed: refused or a table, never worse.
TEST(TuningText, SurvivesEveryCutAndEveryChangedByte) {
  TuningTable table = one_row(1);
  table.merge(one_row(2048));
  const std::string text = tuning_text(table, "about");
  const std::size_t end = text.rfind('}');
  for (std::size_t length = 0; length <= end; ++length) EXPECT_FALSE(parse_tuning(text.substr(0, length), "t").ok());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x10U, 0x20U, 0x80U}) {
      std::string changed = text;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ flip);
      const Result<TuningTable> parsed = parse_tuning(changed, "t");
      if (!parsed.ok()) expect_refused(parsed.status(), {"t"});
    }
  }
}

TEST(ShippedTuning, IsReadableAndOfThisVersion) {
  const Result<TuningTable> table = parse_tuning(kShippedTuning, "data/tuning");
  ASSERT_TRUE(table.ok()) << table.status().text();
  for (const auto& [key, tuned] : table.value()) {
    EXPECT_EQ(key.version, library_version()) << "measure data/tuning anew, or drop it";
    const DeviceSpec device{.name = key.device, .capability_major = 9, .capability_minor = 0, .sm_count = key.sm_count};
    const Problem p{.dtype = key.dtype,
                    .dtype_y = key.dtype,
                    .activation = key.activation,
                    .layout = key.layout,
                    .memory = Memory::kCuda,
                    .m = tuned.m,
                    .n = key.n,
                    .k = key.k,
                    .lda = key.k,
                    .ld_gate = key.k,
                    .ld_up = key.layout == Layout::kSeparate ? key.k : 0,
                    .ldy = key.n};
    EXPECT_TRUE(choose(p, device, tuned.kernel).ok()) << tuned.kernel << " is not a kernel for its row";
  }
}

// --- Files ----------------------------------------------------------------------------------------------------------

TEST(TuningFile, OneThatIsNotThereIsEmpty) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_tuning(folder / "none.json").value(), TuningTable());
  EXPECT_EQ(read_tuning(folder / "no" / "none.json").value(), TuningTable());
}

TEST(TuningFile, WhatCannotBeReadIsNamed) {
  const TemporaryFolder folder;
  expect_refused(read_tuning(folder.path()).status(), {folder.path().string(), "not a regular file"});
  write_file(folder / "file", "x");
  expect_refused(read_tuning(folder / "file" / "tuning.json").status(), {"file/tuning.json", "Not a directory"});
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_refused(read_tuning(folder / "pipe").status(), {"pipe", "not a regular file"});
  write_file(folder / "huge", "");
  std::filesystem::resize_file(folder / "huge", std::uintmax_t{1} << 33);
  expect_refused(read_tuning(folder / "huge").status(), {"huge", "is over 16777216 bytes"});
  if (geteuid() != 0) {
    write_file(folder / "secret", with_rows(""));
    chmod((folder / "secret").c_str(), 0);
    expect_refused(read_tuning(folder / "secret").status(), {"secret", "Permission denied"});
  }
}

TEST(TuningFile, RowsAreAddedAndReplaced) {
  const TemporaryFolder folder;
  const auto path = folder / "tuning.json";
  ASSERT_TRUE(add_tuning(path, {}).ok());
  EXPECT_EQ(read_tuning(path).value(), TuningTable());
  ASSERT_TRUE(add_tuning(path, one_row(512, "first")).ok());
  ASSERT_TRUE(add_tuning(path, one_row(1024, "second")).ok());
  ASSERT_TRUE(add_tuning(path, one_row(500, "third")).ok());  // the bucket of 512
  TuningTable expected = one_row(500, "third");
  expected.merge(one_row(1024, "second"));
  EXPECT_EQ(read_tuning(path).value(), expected);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"tuning.json", "tuning.json.lock"}));
}

TEST(TuningFile, ABadOneIsKeptBeside) {
  const TemporaryFolder folder;
  const auto path = folder / "tuning.json";
  write_file(path, R"({"schema_version": 2, "rows": []})");
  ASSERT_TRUE(add_tuning(path, one_row(512)).ok());
  EXPECT_EQ(read_tuning(path).value(), one_row(512));
  EXPECT_EQ(read_file(folder / "tuning.json.bad"), R"({"schema_version": 2, "rows": []})");
}

TEST(TuningFile, FailuresAreStatusesAndLeaveNothing) {
  const TemporaryFolder folder;
  expect_refused(add_tuning(folder / "no" / "tuning.json", {}), {"no/tuning.json.lock", "cannot open"});
  std::filesystem::create_directory(folder / "tuning.json");
  expect_refused(add_tuning(folder / "tuning.json", {}), {"tuning.json", "not a regular file"});
}

TEST(TuningFile, WritersAtOnceLoseNothing) {
  const TemporaryFolder folder;
  const auto path = folder / "tuning.json";
  constexpr int kWriters = 4, kRows = 8;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    bool good = true;
    for (int i = 0; i < kRows; ++i) good = add_tuning(path, one_row(8 * (writer * kRows + i + 1))).ok() && good;
    _exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_tuning(path).value().size(), static_cast<std::size_t>(kWriters) * kRows);
}

// --- The process ----------------------------------------------------------------------------------------------------

// Sets a variable, or with null removes it, until the end of the test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(had_ ? before_.c_str() : nullptr); }

 private:
  void set(const char* value) const { value == nullptr ? unsetenv(name_) : setenv(name_, value, 1); }
  const char* name_;
  std::string before_;
  bool had_ = false;
};

TEST(TuningCachePath, FollowsTheEnvironment) {
  const Environment home("HOME", "/h"), xdg("XDG_CACHE_HOME", nullptr), own("TILEGLU_CACHE_DIR", nullptr);
  EXPECT_EQ(tuning_cache_path(), "/h/.cache/tileglu/tuning.json");
  {
    const Environment relative("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(tuning_cache_path(), "/h/.cache/tileglu/tuning.json");
  }
  const Environment set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(tuning_cache_path(), "/x/tileglu/tuning.json");
  {
    const Environment empty("TILEGLU_CACHE_DIR", "");
    EXPECT_EQ(tuning_cache_path(), "/x/tileglu/tuning.json");
  }
  const Environment chosen("TILEGLU_CACHE_DIR", "/own");
  EXPECT_EQ(tuning_cache_path(), "/own/tuning.json");
}

TEST(TuningCachePath, MayBeNone) {
  const Environment home("HOME", nullptr), xdg("XDG_CACHE_HOME", nullptr), own("TILEGLU_CACHE_DIR", nullptr);
  EXPECT_TRUE(tuning_cache_path().empty());
}

// In a process of its own, since a process reads the tables once: what it says on standard error, and how many rows the
// user's table has, after many threads asked at once.
struct Asked {
  std::string warnings;
  std::size_t rows = 0;
};
Asked ask_in_a_child(const std::filesystem::path& folder) {
  const Environment own("TILEGLU_CACHE_DIR", folder.c_str());
  const TemporaryFolder scratch;
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen((scratch / "stderr").c_str(), "w", stderr) == nullptr) _exit(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { (void)process_tuning(); });
    for (std::thread& thread : threads) thread.join();
    write_file(scratch / "rows", std::to_string(process_tuning()->user.size()));
    std::fflush(stderr);
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return {.warnings = read_file(scratch / "stderr"), .rows = std::stoul(read_file(scratch / "rows"))};
}

TEST(ProcessTuning, ReadsTheCacheInSilence) {
  const TemporaryFolder folder;
  EXPECT_EQ(ask_in_a_child(folder.path()).warnings, "");
  ASSERT_TRUE(add_tuning(folder / "tuning.json", one_row(512)).ok());
  const Asked asked = ask_in_a_child(folder.path());
  EXPECT_EQ(asked.warnings, "");
  EXPECT_EQ(asked.rows, 1U);
}

TEST(ProcessTuning, ABadCacheIsOneWarning) {
  const TemporaryFolder folder;
  for (const Bad& bad : bad_tables()) {
    write_file(folder / "tuning.json", bad.text);
    const Asked asked = ask_in_a_child(folder.path());
    EXPECT_EQ(asked.rows, 0U) << bad.text;
    EXPECT_EQ(std::count(asked.warnings.begin(), asked.warnings.end(), '\n'), 1) << asked.warnings;
    EXPECT_TRUE(asked.warnings.starts_with("tileglu: tuning cache ignored: ")) << asked.warnings;
    EXPECT_NE(asked.warnings.find((folder / "tuning.json").string()), std::string::npos) << asked.warnings;
    EXPECT_NE(asked.warnings.find(bad.named), std::string::npos) << asked.warnings;
  }
}

}  // namespace
}  // namespace tileglu::io
