// SPDX-License-Identifier: Apache-2.0
#include "io/json_text.hpp"

#include "core/format.hpp"
#include "io/message.hpp"

#include <set>
#include <vector>

namespace tileglu::io {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxValues = std::size_t{1} << 22;  // 16 bytes each at least; a tensor of a header has 5 or 6

struct Refusal {
  std::string text;
};

// The parser's callback; ends the parse by throwing Refusal. The parser itself keeps the last of duplicate keys.
class Guard {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kMaxDepth) throw Refusal{formatted("nests deeper than {} levels", kMaxDepth)};
    switch (event) {
      case json::parse_event_t::object_start: keys_.emplace_back(); break;
      case json::parse_event_t::object_end: keys_.pop_back(); break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second) throw Refusal{formatted("has the key {} twice", quote(key))};
        break;
      }
      default: break;
    }
    if (++values_ > kMaxValues) throw Refusal{formatted("has more than {} values", kMaxValues)};
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::size_t values_ = 0;
};

}  // namespace

Result<json> parse_json_object(std::string_view text, const std::string& file, const char* what) {
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return file_error(file, formatted("{} is not JSON: byte {} is NUL", what, nul));
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    return file_error(file, formatted("{} is not a JSON object: it starts with {}", what, quote(text.substr(0, 16))));
  }
  try {
    Guard guard;
    return json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const Refusal& refusal) {
    return file_error(file, formatted("{} {}", what, refusal.text));
  } catch (const json::parse_error& error) {
    const std::size_t at = error.byte > 0 ? error.byte - 1 : 0;
    const std::size_t from = at > 16 ? at - 16 : 0;
    return file_error(file, formatted("{} is not valid JSON at byte {}, after {}", what, at,
                                      quote(text.substr(std::min(from, text.size()), at - from))));
  } catch (const json::exception& error) {  // a number outside double
    return file_error(file, formatted("{} is not valid JSON: {}", what, printable(error.what())));
  }
}

}  // namespace tileglu::io
