// SPDX-License-Identifier: Apache-2.0
#include "io/npy.hpp"

#include "io/files.hpp"

namespace tileglu::io {
namespace {

using test::as_span;
using test::expect_refused;

std::string npy(const std::string& header, std::size_t data_bytes, char major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes.append({major, '\0'});
  const auto length = static_cast<std::uint32_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  return bytes + header + std::string(data_bytes, 'x');
}
std::string dict(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
}

TEST(Npy, ReadsEveryVersionAndDtype) {
  for (const char major : {'\1', '\2', '\3'}) {
    const auto tensor = parse_npy(as_span(npy(dict("'<f4'", "(2, 3)"), 24, major)), "x.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    EXPECT_EQ(tensor.value().dtype, Dtype::kFp32);
    EXPECT_EQ(tensor.value().shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(tensor.value().bytes, 24U);
  }
  EXPECT_EQ(parse_npy(as_span(npy(dict("'<f2'", "(3,)"), 6)), "x").value().dtype, Dtype::kFp16);
  EXPECT_EQ(parse_npy(as_span(npy(dict("'<V2'", "(3, 1)"), 6)), "x").value().dtype, Dtype::kBf16);
  EXPECT_EQ(parse_npy(as_span(npy(dict("'|V2'", "()"), 2)), "x").value().dtype, Dtype::kBf16);
}

TEST(Npy, ReadsOtherSpellings) {
  const std::string header = "{ \"shape\":(2,3 ,) ,'fortran_order':False,\"descr\":\"<f2\"}   \n";
  const auto tensor = parse_npy(as_span(npy(header, 12)), "x");
  ASSERT_TRUE(tensor.ok()) << tensor.status().text();
  EXPECT_EQ(tensor.value().shape, (std::vector<std::int64_t>{2, 3}));
}

struct Refused {
  std::string bytes;
  std::vector<std::string> parts;
  Code code = Code::kInvalidArgument;
};

TEST(Npy, RefusesWithAReason) {
  const std::vector<Refused> cases = {
      {"", {"not a .npy file"}},
      {"PK\x03\x04", {"not a .npy file"}},
      {"\x93NUMPY", {"truncated inside the version"}},
      {"\x93NUMPY\x01", {"truncated inside the version"}},
      {std::string("\x93NUMPY\x01\x00\x10", 9), {"truncated inside the header length"}},
      {npy("", 0, 4), {"version 4.0 is unknown"}},
      {npy("", 0, '\xff'), {"version 255.0 is unknown"}},
      {npy("", 0), {"not a dict"}},
      {npy(std::string(70000, ' '), 0, 2), {"header length 70000 is above the limit of 65535"}},
      {npy(dict("'<f4'", "(2, 3)"), 0).substr(0, 40), {"truncated inside the header: expected 70 bytes, found 40"}},
      {npy(dict("'<f4'", "(2, 3)"), 23), {"\"<f4\"", "[2, 3]: expected 24 bytes", "found 23"}},
      {npy(dict("'<f4'", "(2, 3)"), 25), {"expected 24 bytes", "found 25"}},
      {npy(dict("'<f8'", "(2, 3)"), 48), {"\"<f8\" is not supported", "<f4"}, Code::kNotSupported},
      {npy(dict("'>f4'", "(2, 3)"), 24), {"\">f4\" is not supported"}, Code::kNotSupported},
      {npy(dict("'|O'", "(2, 3)"), 24), {"\"|O\" is not supported"}, Code::kNotSupported},
      {npy(dict("[('a', '<f4')]", "(2, 3)"), 24), {"plain dtype"}},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 24),
       {"fortran_order is True", "ascontiguousarray"},
       Code::kNotSupported},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }\n", 24), {"header is not a dict"}},
      {npy("{'descr': '<f4', 'shape': (2, 3), }\n", 24), {"header is not a dict"}},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': '1'}", 24), {"header is not a dict"}},
      {npy("{'shape': (2,), " + dict("'<f4'", "(2, 3)").substr(1), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(2, 3)") + "{", 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(-2, -3)"), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(2.0, 3)"), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "6"), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(6)"), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(9223372036854775808, 3)"), 24), {"header is not a dict"}},
      {npy(dict("'<f4'", "(4611686018427387904, 4)"), 0), {"more than 2^64 bytes", "4611686018427387904"}},
      {npy("{'descr': '<f4", 0), {"header is not a dict"}},
  };
  for (const Refused& refused : cases) {
    SCOPED_TRACE(refused.parts[0]);
    const auto tensor = parse_npy(as_span(refused.bytes), "dir/x.npy");
    ASSERT_FALSE(tensor.ok());
    expect_refused(tensor.status(), refused.parts, refused.code);
    expect_refused(tensor.status(), {"dir/x.npy: "}, refused.code);
  }
}

TEST(Npy, HeaderIsAlignedAndRoundTrips) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{2, 3}, {6}, {1, 1, 6}}) {
    const TensorSource source{.name = "", .dtype = Dtype::kFp32, .shape = shape, .data = values, .bytes = 24};
    const auto header = make_npy_header(source, "x.npy");
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header.value().size() % 64, 0U);
    const std::string bytes = header.value() + std::string(reinterpret_cast<const char*>(values), sizeof values);
    const auto tensor = parse_npy(as_span(bytes), "x.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    EXPECT_EQ(tensor.value().shape, shape);
    EXPECT_EQ(test::elements<float>(tensor.value()), std::vector<float>(values, values + 6));
  }
}

}  // namespace
}  // namespace tileglu::io
