// SPDX-License-Identifier: Apache-2.0
#include "io/message.hpp"

#include <gtest/gtest.h>

namespace tileglu::io {
namespace {

TEST(Message, EscapesWhatWouldBreakTheLine) {
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // U+009B, a control sequence introducer to some terminals
}

TEST(Message, KeepsUtf8AndEscapesOtherBytes) {
  EXPECT_EQ(printable("Größe \xe2\x82\xac \xf0\x9f\x98\x80"), "Größe \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                           // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");         // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80").substr(0, 4), "\\xf4");  // above U+10FFFF
}

TEST(Message, CutsLongNames) {
  const std::string text = printable(std::string(100000, 'x'), 50);
  EXPECT_EQ(text, std::string(50, 'x') + "...");
}

}  // namespace
}  // namespace tileglu::io
