// SPDX-License-Identifier: Apache-2.0
// The safetensors reader on files that are right, wrong in one place, and hostile.
#include "io/safetensors.hpp"

#include "io/files.hpp"

#include <ostream>

namespace tileglu::io {
namespace {

using test::as_span;
using test::entry;
using test::expect_refused;
using test::safetensors_bytes;
using test::TemporaryFolder;
using test::write_file;

const std::string kTwo = R"({"a":)" + entry("BF16", "[2,3]", 0, 12) + R"(,"b":)" + entry("F32", "[2]", 12, 20) + "}";

TEST(Safetensors, ReadsWhatIsRight) {
  const std::string bytes = safetensors_bytes(R"({"__metadata__":{"k":"v"},)" + kTwo.substr(1) + "  ", 20);
  const auto file = parse_safetensors(as_span(bytes), "x.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().metadata, (Metadata{{"k", "v"}}));
  ASSERT_EQ(file.value().tensors.size(), 2U);
  const TensorView& a = file.value().tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, Dtype::kBf16);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(a.bytes, 12U);
  EXPECT_EQ(static_cast<const char*>(a.data)[11], 11);
  EXPECT_EQ(a.data, bytes.data() + bytes.size() - 20);
  EXPECT_EQ(static_cast<const char*>(file.value().tensors[1].data)[0], 12);
}

TEST(Safetensors, ReadsNothingEmptyAndScalar) {
  EXPECT_TRUE(parse_safetensors(as_span(safetensors_bytes("{}", 0)), "x").ok());
  const std::string header =
      R"({"e":)" + entry("F16", "[0,3]", 4, 4) + R"(,"s":)" + entry("F32", "[]", 0, 4) + R"(,"__metadata__":null})";
  const auto file = parse_safetensors(as_span(safetensors_bytes(header, 4)), "x");
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().tensors.size(), 2U);
}

TEST(Safetensors, OtherDtypesDoNotSpoilTheFile) {
  const std::string header = R"({"a":)" + entry("BF16", "[1,2]", 0, 4) + R"(,"ids":)" + entry("I64", "[2]", 4, 20) +
                             R"(,"q":)" + entry("F8_E4M3", "[3]", 20, 23) + R"(,"z":)" + entry("F4", "[2]", 23, 24) +
                             "}";
  const auto file = parse_safetensors(as_span(safetensors_bytes(header, 24)), "x");
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().tensors.size(), 1U);
  ASSERT_EQ(file.value().others.size(), 3U);
  EXPECT_EQ(file.value().others[0].name, "ids");
  EXPECT_EQ(file.value().others[1].dtype, "F8_E4M3");
}

struct Hostile {
  const char* name;
  std::string bytes;
  std::vector<std::string> parts;  // of the message
};
void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.name;
}

std::string with_length(std::uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}
// A file with the one tensor "t", 16 bytes of data.
Hostile one(const char* name, const std::string& fields, std::vector<std::string> parts) {
  parts.emplace_back("bad.safetensors: tensor \"t\"");
  return {name, safetensors_bytes(R"({"t":)" + fields + "}", 16), std::move(parts)};
}
// Two tensors, 16 bytes of data.
Hostile two(const char* name, const std::string& first, const std::string& second, std::vector<std::string> parts) {
  parts.emplace_back("bad.safetensors: ");
  return {name, safetensors_bytes(R"({"first":)" + first + R"(,"second":)" + second + "}", 16), std::move(parts)};
}
std::string repeat(const std::string& text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::vector<Hostile> hostile_headers() {
  return {
      {"Empty", "", {"expected at least 8 bytes, found 0"}},
      {"SevenBytes", "1234567", {"expected at least 8 bytes, found 7"}},
      {"HeaderLength2To63", with_length(0x7FFFFFFFFFFFFFFF, "{}"), {"9223372036854775807", "100000000"}},
      {"HeaderLength2To64", with_length(~0ULL, "{}"), {"18446744073709551615", "limit"}},
      {"HeaderOverTheCap", with_length(100000001, "{}"), {"100000001", "limit of 100000000"}},
      {"HeaderPastTheFile", with_length(100, "{}"), {"truncated inside the header", "expected 108 bytes, found 10"}},
      {"HeaderEmpty", with_length(0, ""), {"not a JSON object"}},
      {"HeaderIsSpaces", with_length(4, "    "), {"not a JSON object"}},
      {"HeaderIsAList", safetensors_bytes("[]", 0), {"not a JSON object", "[]"}},
      {"HeaderIsBinary", safetensors_bytes("\x80\x02}q", 0), {"not a JSON object", "\\x80\\x02"}},
      {"HeaderCut", safetensors_bytes(R"({"a":{"dtype")", 0), {"not valid JSON at byte 13"}},
      {"HeaderTwice", safetensors_bytes("{}{}", 0), {"not valid JSON at byte 2"}},
      {"HeaderWithNul", safetensors_bytes(std::string("{}\0{", 4), 0), {"byte 2 is NUL"}},
      {"HeaderBadUtf8", safetensors_bytes("{\"\xff\":1}", 0), {"not valid JSON"}},
      {"HeaderWithComment", safetensors_bytes("{/**/}", 0), {"not valid JSON"}},
      {"NumberBeyondDouble", safetensors_bytes(R"({"a":1e999})", 0), {"not valid JSON", "1e999"}},
      {"MetadataList", safetensors_bytes(R"({"__metadata__":[]})", 0), {"__metadata__ is not an object of strings"}},
      {"MetadataNumber", safetensors_bytes(R"({"__metadata__":{"k":1}})", 0), {"__metadata__", "\"k\" is 1"}},
      {"MetadataTwice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})", 0), {"\"__metadata__\" twice"}},
      {"NameWithEscape",
       safetensors_bytes(R"({"\u001b[2J\n":1})", 0),
       {"tensor \"\\x1b[2J\\x0a\"", "is not an object"}},
  };
}

std::vector<Hostile> hostile_tensors() {
  const std::string good = entry("F32", "[4]", 0, 16);
  return {
      one("NotAnObject", "3", {"3 is not an object"}),
      one("NoDtype", R"({"shape":[4],"data_offsets":[0,16]})", {"has no dtype"}),
      one("NoShape", R"({"dtype":"F32","data_offsets":[0,16]})", {"has no shape"}),
      one("NoOffsets", R"({"dtype":"F32","shape":[4]})", {"has no data_offsets"}),
      one("UnknownField", good.substr(0, good.size() - 1) + R"(,"strides":[1]})", {"unknown field \"strides\""}),
      {"FieldTwice",
       safetensors_bytes(R"({"t":{"dtype":"F16",)" + good.substr(1) + "}", 16),
       {"bad.safetensors: header has the key \"dtype\" twice"}},
      {"NameTwice",
       safetensors_bytes(R"({"t":)" + entry("F32", "[2]", 0, 8) + R"(,"t":)" + entry("F32", "[2]", 8, 16) + "}", 16),
       {"bad.safetensors: header has the key \"t\" twice"}},
      one("UnknownDtype", entry("Q4_1", "[4]", 0, 16), {"dtype \"Q4_1\" is unknown", "known: BF16 F16 F32"}),
      one("DtypeNumber", R"({"dtype":7,"shape":[4],"data_offsets":[0,16]})", {"dtype 7 is unknown"}),
      one("ShapeNumber", entry("F32", "4", 0, 16), {"shape 4 is not a list"}),
      one("ShapeNegative", entry("F32", "[-4]", 0, 16), {"-4 is not an integer from 0 to 2^63-1"}),
      one("ShapeFloat", entry("F32", "[4.0]", 0, 16), {"4.0 is not an integer"}),
      one("ShapeText", entry("F32", R"(["4"])", 0, 16), {"\"4\" is not an integer"}),
      one("Shape2To63", entry("F32", "[9223372036854775808]", 0, 16), {"9223372036854775808 is not an integer"}),
      one("Shape2To64", entry("F32", "[18446744073709551620]", 0, 16), {"is not an integer from 0 to 2^63-1"}),
      one("ShapeNested", entry("F32", "[[4]]", 0, 16), {"[4] is not an integer"}),
      one("ShapeOverflow", entry("F32", "[4294967296,4294967296]", 0, 16), {"more than 2^64 bits", "4294967296"}),
      // 2^62 * 4 bytes is 0 modulo 2^64: a product without overflow check would accept it
      one("ShapeWraps", entry("F32", "[4611686018427387904]", 0, 0), {"more than 2^64 bits"}),
      one("RankTooHigh", entry("F32", "[" + repeat("1,", 16) + "4]", 0, 16), {"17 dimensions, limit 16"}),
      one("HalfBytes", entry("F4", "[3]", 0, 16), {"do not fill whole bytes"}),
      one("ShapeTooSmall", entry("F32", "[3]", 0, 16), {"F32 and shape [3] need 12 bytes", "[0, 16] hold 16"}),
      one("ShapeTooLarge", entry("BF16", "[3,3]", 0, 16), {"BF16 and shape [3, 3] need 18 bytes", "hold 16"}),
      one("OffsetsReversed", entry("F32", "[4]", 16, 0), {"[16,0]: begin is above end"}),
      one("OffsetsNegative", R"({"dtype":"F32","shape":[4],"data_offsets":[-16,0]})", {"[-16,0] are not two integers"}),
      one("OffsetsFloat", R"({"dtype":"F32","shape":[4],"data_offsets":[0,1.6e1]})", {"are not two integers"}),
      one("OffsetsThree", R"({"dtype":"F32","shape":[4],"data_offsets":[0,8,16]})", {"are not two integers"}),
      one("OffsetsHuge", entry("F32", "[4]", ~0ULL - 16, ~0ULL), {"are not two integers from 0 to 2^63-1"}),
      one("PastTheEnd", entry("F32", "[5]", 0, 20), {"truncated", "expected 83 bytes, found 79"}),
      one("FarPastTheEnd", entry("F32", "[4]", 1ULL << 62, (1ULL << 62) + 16), {"truncated", "4611686018427388018"}),
      two("Overlap", entry("F32", "[2]", 0, 8), entry("F32", "[3]", 4, 16),
          {"tensor \"second\": data_offsets [4, 16] overlap tensor \"first\" [0, 8]"}),
      two("SameBytes", good, good, {"overlap tensor \"first\" [0, 16]"}),
      two("EmptyInside", good, entry("F32", "[0]", 4, 4), {"tensor \"second\"", "[4, 4] overlap"}),
      two("Hole", entry("F32", "[1]", 0, 4), entry("F32", "[2]", 8, 16), {"tensor \"second\"", "a hole of 4 bytes"}),
      two("HoleAtTheStart", entry("F32", "[1]", 4, 8), entry("F32", "[2]", 8, 16), {"tensor \"first\"", "hole of 4"}),
      two("RestAtTheEnd", entry("F32", "[1]", 0, 4), entry("F32", "[2]", 4, 12),
          {"belong to no tensor", "expected 137 bytes, found 141"}),
  };
}

class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedWithAReason) {
  const TemporaryFolder folder;
  write_file(folder / "bad.safetensors", GetParam().bytes);
  const auto file = read_safetensors(folder / "bad.safetensors");
  ASSERT_FALSE(file.ok());
  expect_refused(file.status(), GetParam().parts);
  expect_refused(file.status(), {(folder / "bad.safetensors").string()});
  EXPECT_LT(file.status().text().size(), 800U);
}

std::string name_of_case(const testing::TestParamInfo<Hostile>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Header, HostileSafetensors, testing::ValuesIn(hostile_headers()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Tensor, HostileSafetensors, testing::ValuesIn(hostile_tensors()), name_of_case);

// Not in the table above, which every test process builds.
TEST(Safetensors, BombsAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"a":)" + repeat("[", 1'000'000), "nests deeper than 32"},
      {repeat(R"({"a":)", 1'000'000), "nests deeper than 32"},
      {R"({"a":[)" + repeat("0,", 4'200'000) + "0]}", "has more than 4194304 values"},
  };
  for (const auto& [header, part] : cases) {
    expect_refused(parse_safetensors(as_span(safetensors_bytes(header, 0)), "x").status(), {"x: header", part});
  }
}

// Every proper prefix of a right file is refused, and so is every file with a byte more.
TEST(Safetensors, NoPrefixIsAccepted) {
  const std::string bytes = safetensors_bytes(kTwo, 20);
  ASSERT_TRUE(parse_safetensors(as_span(bytes), "x").ok());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_safetensors(as_span(bytes.substr(0, size)), "x").ok()) << size;
  }
  EXPECT_FALSE(parse_safetensors(as_span(bytes + '\0'), "x").ok());
}

TEST(Safetensors, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  expect_refused(read_safetensors(folder / "absent.safetensors").status(), {"absent.safetensors", "cannot open"});
  expect_refused(read_safetensors(folder.path()).status(), {"is a folder"});
  expect_refused(read_safetensors("/dev/null").status(), {"/dev/null", "not a regular file"});
}

}  // namespace
}  // namespace tileglu::io
