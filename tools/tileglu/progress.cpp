// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "core/format.hpp"
#include "output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tileglu::tool {
namespace {

constexpr int kBarCells = 20;
constexpr std::size_t kDefaultWidth = 80;

volatile std::sig_atomic_t received = 0;

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole < 3600) return formatted("{}:{:02}", whole / 60, whole % 60);
  return formatted("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string time_left(const Progress& progress) {
  return progress.left_s < 0 ? std::string("time unknown") : formatted("about {} left", duration(progress.left_s));
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultWidth;
}

void write_error(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

std::string progress_line(const Progress& progress, std::size_t width) {
  const auto filled = static_cast<std::size_t>(std::clamp(progress.share, 0.0, 1.0) * kBarCells);
  std::string line = formatted("[{}{}] {}/{}  {}  {}", std::string(filled, '#'), std::string(kBarCells - filled, '.'),
                               progress.done, progress.total, time_left(progress), one_line(progress.what));
  if (line.size() > width) line.resize(width);
  return line;
}

ProgressDisplay::ProgressDisplay(std::string command)
    : ProgressDisplay(std::move(command), isatty(STDERR_FILENO) == 1) {}

void ProgressDisplay::show(const Progress& progress) {
  if (terminal_) {
    // One column is left free: a full line makes some terminals wrap.
    write_error(formatted("\r{}\x1b[K", progress_line(progress, terminal_width() - 1)));
    drawn_ = true;
  } else if (progress.done > last_done_) {
    print_error(command_,
                formatted("{}/{}, {}: {}", progress.done, progress.total, time_left(progress), progress.what));
  }
  last_done_ = progress.done;
}

void ProgressDisplay::clear() {
  if (drawn_) write_error("\r\x1b[K");
  drawn_ = false;
}

StopRequest::StopRequest() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = [](int number) { received = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopRequest::~StopRequest() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

int StopRequest::signal() {
  return received;
}

}  // namespace tileglu::tool
