// SPDX-License-Identifier: Apache-2.0
// A long run on standard error: a bar that rewrites its line on a terminal, a line per finished piece elsewhere. And
// its end by Ctrl-C.
#pragma once

#include <csignal>
#include <string>

namespace tileglu::tool {

struct Progress {
  int done = 0, total = 0;
  double share = 0;    // of the work, 0 to 1
  double left_s = -1;  // below 0: not known yet
  std::string what = {};
};

// "[######..............] 3/10  about 2:40 left  WHAT", cut to `width` columns.
std::string progress_line(const Progress& progress, std::size_t width);

class ProgressDisplay {
 public:
  explicit ProgressDisplay(std::string command);
  ProgressDisplay(std::string command, bool terminal) : command_(std::move(command)), terminal_(terminal) {}
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  ~ProgressDisplay() { clear(); }

  void show(const Progress& progress);
  void clear();  // leaves the line empty

 private:
  std::string command_;
  bool terminal_;
  bool drawn_ = false;
  int last_done_ = 0;
};

// While it lives, SIGINT and SIGTERM only take a note; a second one ends the process as usual.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();
  // The signal that came, or 0.
  static int signal();

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};  // as they were
};

}  // namespace tileglu::tool
