// SPDX-License-Identifier: Apache-2.0
#include "tileglu/progress.hpp"

#include <gtest/gtest.h>

namespace tileglu::tool {
namespace {

TEST(ProgressLine, ShowsBarCountAndTimeLeft) {
  EXPECT_EQ(progress_line({.done = 3, .total = 12, .share = 0.25, .left_s = 129.2, .what = "m=512"}, 100),
            "[#####...............] 3/12  about 2:10 left  m=512");
  EXPECT_EQ(progress_line({.done = 0, .total = 1, .what = "m=1"}, 100),
            "[....................] 0/1  time unknown  m=1");
  EXPECT_EQ(progress_line({.done = 9, .total = 9, .share = 1.5, .left_s = 0, .what = ""}, 100),
            "[####################] 9/9  about 0:00 left  ");
  EXPECT_NE(progress_line({.left_s = 3725, .what = ""}, 100).find("about 1:02:05 left"), std::string::npos);
}

TEST(ProgressLine, IsOneLineThatFits) {
  const std::string line = progress_line({.what = std::string(300, 'x') + "\n\x1b[2J"}, 60);
  EXPECT_EQ(line.size(), 60U);
  EXPECT_EQ(progress_line({.what = "a\nb\x1b[2J"}, 200).find_first_of("\n\x1b"), std::string::npos);
}

std::string shown(bool terminal) {
  testing::internal::CaptureStderr();
  {
    ProgressDisplay display("tool", terminal);
    for (int done = 0; done < 3; ++done) {
      for (const char* what : {"verifying", "timing"}) {
        display.show({.done = done, .total = 2, .share = done / 2.0, .left_s = 60, .what = what});
      }
    }
  }
  return testing::internal::GetCapturedStderr();
}

TEST(ProgressDisplay, WritesALinePerFinishedPieceWhereThereIsNoTerminal) {
  EXPECT_EQ(shown(false), "tool: 1/2, about 1:00 left: verifying\ntool: 2/2, about 1:00 left: verifying\n");
}

TEST(ProgressDisplay, RewritesOneLineOnATerminalAndLeavesItEmpty) {
  const std::string text = shown(true);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 7);
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

}  // namespace
}  // namespace tileglu::tool
