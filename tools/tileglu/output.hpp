// SPDX-License-Identifier: Apache-2.0
// Exit codes, standard output and error lines. Everything a command prints goes through here, so that a closed or full
// standard output is noticed at the end instead of being lost.
#pragma once

#include "core/format.hpp"
#include "core/status.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tileglu::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;  // a check failed, or standard output could not be written
inline constexpr int kExitUsage = 2;        // wrong arguments or input
inline constexpr int kExitUnavailable = 3;  // device or backend not available

int exit_code(const Status& status);

// Points closed standard descriptors at /dev/null, so that no file opened later takes their number. Writing to a
// standard output that was closed still fails, as it should.
void reserve_standard_streams();
void print(std::string_view text);
// Flushes; the error of the first write that failed.
Status finish_output();
// One line on standard error, whatever the text.
void print_error(std::string_view where, std::string_view text);
std::string one_line(std::string_view text);

// A refusal of the form "--name=value: rule".
template <class Value>
Status bad_argument(std::string_view name, const Value& value, std::string_view rule) {
  return {Code::kInvalidArgument, formatted("{}={}: {}", name, value, rule)};
}

// A text table with columns as wide as their longest cell; numbers are right-aligned by the caller's choice.
class Table {
 public:
  struct Column {
    std::string title;
    bool left = false;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tileglu::tool
