// SPDX-License-Identifier: Apache-2.0
#include "io/npy.hpp"

#include "core/format.hpp"
#include "io/mapped_file.hpp"
#include "io/message.hpp"

#include <charconv>
#include <cstring>
#include <optional>

namespace tileglu::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = 65535;  // what version 1.0 can hold; plain arrays need about 118
constexpr std::size_t kMaxRank = 16;

struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// The header is a Python dict literal with three known keys; this reads exactly that. Functions return false where the
// text is something else, with at() then near the place.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text), rest_(text) {}

  bool parse(Fields& fields) {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':')) return false;
      if (key == "descr" && !fields.descr) {
        if (!string(fields.descr.emplace())) return false;
      } else if (key == "fortran_order" && !fields.fortran_order) {
        if (!boolean(fields.fortran_order.emplace())) return false;
      } else if (key == "shape" && !fields.shape) {
        if (!tuple(fields.shape.emplace())) return false;
      } else {
        return false;  // unknown or twice
      }
      if (!take(',') && !peek('}')) return false;
    }
    skip_space();
    return rest_.empty();
  }

  std::size_t at() const { return text_.size() - rest_.size(); }

 private:
  void skip_space() {
    const std::size_t next = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(next == std::string_view::npos ? rest_.size() : next);
  }
  bool peek(char c) {
    skip_space();
    return rest_.starts_with(c);
  }
  bool take(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool string(std::string& out) {
    const char mark = peek('"') ? '"' : '\'';
    if (!take(mark)) return false;
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return out.find('\\') == std::string::npos;
  }
  bool boolean(bool& out) {
    skip_space();
    out = rest_.starts_with("True");
    const std::string_view word = out ? "True" : "False";
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool tuple(std::vector<std::int64_t>& out) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0 || out.size() == kMaxRank) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      out.push_back(extent);
      const bool comma = take(',');
      if (!comma && (!peek(')') || out.size() == 1)) return false;  // (3) is an integer, not a tuple
    }
    return true;
  }

  std::string_view text_;
  std::string_view rest_;
};

// Splits the file into header text and data.
Result<std::string_view> header_text(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) return file_error(file, "is not a .npy file: it does not start with \\x93NUMPY");
  if (text.size() < kMagic.size() + 2) return file_error(file, "is truncated inside the version");
  const unsigned major = static_cast<unsigned char>(text[kMagic.size()]);
  const unsigned minor = static_cast<unsigned char>(text[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return file_error(file, formatted(".npy version {}.{} is unknown (known: 1.0 2.0 3.0)", major, minor));
  }
  const std::size_t length_at = kMagic.size() + 2;
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (text.size() < length_at + length_bytes) return file_error(file, "is truncated inside the header length");
  std::memcpy(&length, text.data() + length_at, length_bytes);
  if (length > kMaxHeaderBytes) {
    return file_error(file, formatted("header length {} is above the limit of {} bytes", length, kMaxHeaderBytes));
  }
  const std::size_t start = length_at + length_bytes;
  if (length > text.size() - start) {
    return file_error(
        file, formatted("is truncated inside the header: expected {} bytes, found {}", start + length, text.size()));
  }
  return text.substr(start, length);
}

Result<Dtype> dtype_from_descr(const std::string& descr, const std::string& file) {
  if (descr == "<f4") return Dtype::kFp32;
  if (descr == "<f2") return Dtype::kFp16;
  if (descr == "<V2" || descr == "|V2") return Dtype::kBf16;
  return Status(Code::kNotSupported,
                formatted("{}: dtype {} is not supported (supported: '<f4', '<f2', and '<V2' or '|V2' as bf16)", file,
                          quote(descr)));
}

}  // namespace

Result<TensorView> parse_npy(std::span<const std::byte> bytes, const std::string& file,
                             const std::shared_ptr<const void>& owner) {
  const Result<std::string_view> header = header_text(bytes, file);
  if (!header.ok()) return header.status();
  Fields fields;
  HeaderParser parser(header.value());
  if (!parser.parse(fields) || !fields.descr || !fields.fortran_order || !fields.shape) {
    return file_error(file, formatted("header is not a dict of a plain dtype 'descr', 'fortran_order' and 'shape' at "
                                      "byte {}: {}",
                                      parser.at(), quote(header.value())));
  }
  const Result<Dtype> dtype = dtype_from_descr(*fields.descr, file);
  if (!dtype.ok()) return dtype.status();
  if (*fields.fortran_order && fields.shape->size() > 1) {
    return Status(Code::kNotSupported, file +
                                           ": fortran_order is True, only C order is supported; save "
                                           "numpy.ascontiguousarray of it");
  }
  std::uint64_t size = size_of(dtype.value());
  for (const std::int64_t extent : *fields.shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size)) {
      return file_error(file, formatted("shape {} needs more than 2^64 bytes", shape_text(*fields.shape)));
    }
  }
  const auto start = static_cast<std::size_t>(header.value().data() - reinterpret_cast<const char*>(bytes.data())) +
                     header.value().size();
  if (size != bytes.size() - start) {
    return file_error(file, formatted("dtype {} and shape {}: expected {} bytes of data, found {}",
                                      quote(*fields.descr), shape_text(*fields.shape), size, bytes.size() - start));
  }
  return TensorView{.name = {},
                    .dtype = dtype.value(),
                    .shape = *fields.shape,
                    .data = bytes.data() + start,
                    .bytes = size,
                    .owner = owner,
                    .file = file};
}

Result<TensorView> read_npy(const std::filesystem::path& path) {
  const Result<MappedFile> mapped = map_file(path);
  if (!mapped.ok()) return mapped.status();
  return parse_npy(mapped.value().bytes, display(path), mapped.value().owner);
}

Result<std::string> make_npy_header(const TensorSource& tensor, const std::string& file) {
  if (tensor.dtype == Dtype::kBf16) {
    return Status(Code::kNotSupported, file + ": numpy has no bf16; write .safetensors, or fp32 or fp16");
  }
  std::uint64_t size = size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) size *= static_cast<std::uint64_t>(extent);
  if (size != tensor.bytes) {
    return tensor_error(file, tensor.name,
                        formatted("shape {} needs {} bytes, found {}", shape_text(tensor.shape), size, tensor.bytes));
  }
  const char* const comma = tensor.shape.size() == 1 ? "," : "";
  std::string dict = formatted("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                               tensor.dtype == Dtype::kFp32 ? "<f4" : "<f2", joined(tensor.shape), comma);
  constexpr std::size_t kPrefix = kMagic.size() + 4;
  dict.append(63 - (kPrefix + dict.size()) % 64, ' ').push_back('\n');  // data starts aligned to 64
  const auto length = static_cast<std::uint16_t>(dict.size());
  std::string header(kMagic);
  header.append("\x01\x00", 2).append(reinterpret_cast<const char*>(&length), sizeof length).append(dict);
  return header;
}

}  // namespace tileglu::io
