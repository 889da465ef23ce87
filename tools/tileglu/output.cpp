// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "core/format.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tileglu::tool {
namespace {

int first_write_errno = 0;

void note_failure() {
  if (first_write_errno == 0) first_write_errno = errno != 0 ? errno : EIO;
}

std::string padded(const std::string& cell, std::size_t width, bool left) {
  return left ? formatted("{:<{}}", cell, width) : formatted("{:>{}}", cell, width);
}

}  // namespace

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return kExitOk;
    case Code::kInvalidArgument:
    case Code::kNotSupported: return kExitUsage;
    case Code::kNotAvailable:
    case Code::kCudaError:
    case Code::kOutOfMemory: return kExitUnavailable;
    case Code::kWorkspaceTooSmall:
    case Code::kInternalError: break;
  }
  return kExitCheckFailed;
}

void reserve_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one. Read-only for 1: writes then fail with EBADF.
    if (open("/dev/null", descriptor == 1 ? O_RDONLY : O_RDWR) != descriptor) note_failure();
  }
}

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) note_failure();
}

Status finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_failure();
  if (first_write_errno == 0) return {};
  return {Code::kInternalError, formatted("cannot write to standard output: {}", std::strerror(first_write_errno))};
}

std::string one_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "; ";
    } else {
      line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return line;
}

void print_error(std::string_view where, std::string_view text) {
  const std::string line = formatted("{}: {}\n", where, one_line(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(column.title.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const auto& cell_of, std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
      out += (i == 0 ? "" : "  ") + padded(cell_of(i), widths[i], columns_[i].left);
    }
    return out.erase(out.find_last_not_of(' ') + 1) + "\n";
  };
  std::string out = line([&](std::size_t i) { return columns_[i].title; }, columns_.size());
  for (const auto& row : rows_) out += line([&](std::size_t i) { return row[i]; }, row.size());
  return out;
}

}  // namespace tileglu::tool
