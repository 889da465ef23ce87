// SPDX-License-Identifier: Apache-2.0
#include "seeds.hpp"

#include <cstdint>

namespace tileglu::fuzz {
namespace {

std::string with_length(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + std::string(data_bytes, 'd');
}

std::string npy(char major, const std::string& dict, std::size_t data_bytes) {
  const auto length = static_cast<std::uint32_t>(dict.size());
  std::string bytes = "\x93NUMPY";
  bytes.append({major, '\0'}).append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  return bytes + dict + std::string(data_bytes, 'd');
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string two = R"({"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})";
  const std::string other =
      R"({"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"q":{"dtype":"F4","shape":[2],"data_offsets":[8,9]}})";
  const std::string empty = R"({"e":{"dtype":"F16","shape":[0,9],"data_offsets":[0,0]},"__metadata__":null}  )";
  return {
      with_length("{}", 0),
      with_length(two, 20),
      two + std::string(20, 'd'),
      with_length(other, 9),
      other + std::string(9, 'd'),
      with_length(empty, 0),
      npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24),
      npy(2, "{'descr': '<f2', 'fortran_order': True, 'shape': (3,), }\n", 6),
      npy(3, "{'descr': '<V2', 'fortran_order': False, 'shape': (), }\n", 2),
      R"({"metadata":{"total_size":8},"weight_map":{"a":"x.safetensors","b":"d/y.safetensors"}})",
      R"({"weight_map":{"a":"../x"}})",
      R"({"schema_version": 1, "about": "x", "rows": [{"device":"NVIDIA H200","sm_count":132,"version":"0.1.0",)"
      R"("dtype":"bf16","activation":"silu","layout":"gate_up","n":64,"k":8,"m":1,"kernel":"a","median_us":1.5}]})",
      R"({"\u0000\ud83d\ude00":[-1,1e5,true,null,"\\\"\n"]})",
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
  };
}

}  // namespace tileglu::fuzz
