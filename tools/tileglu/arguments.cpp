// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include "core/format.hpp"

#include <charconv>

namespace tileglu::tool {

std::int64_t parse_integer(const std::string& name, std::string_view text, IntegerRange range) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < range.low || value > range.high) {
    throw CLI::ValidationError(formatted("{}={}", name, text),
                               formatted("must be an integer from {} to {}", range.low, range.high));
  }
  return value;
}

double parse_number(const std::string& name, std::string_view text, NumberRange range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value >= range.low && value <= range.high)) {
    throw CLI::ValidationError(formatted("{}={}", name, text),
                               formatted("must be a number from {} to {}", range.low, range.high));
  }
  return value;
}

std::vector<std::string> split_list(const std::string& name, const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) throw CLI::ValidationError(formatted("{}={}", name, text), "has an empty element");
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

CLI::Option* add_integer_list(CLI::App& command, const std::string& name, std::vector<std::int64_t>& target,
                              IntegerRange range, const std::string& help) {
  const auto parse = [name, &target, range](const std::string& text) {
    target.clear();
    for (const std::string& part : split_list(name, text)) target.push_back(parse_integer(name, part, range));
  };
  return command.add_option_function<std::string>(name, parse, help)->type_name("INT[,INT...]");
}

CLI::Option* add_text_list(CLI::App& command, const std::string& name, std::vector<std::string>& target,
                           const std::string& help) {
  const auto parse = [name, &target](const std::string& text) { target = split_list(name, text); };
  return command.add_option_function<std::string>(name, parse, help)->type_name("NAME[,NAME...]");
}

}  // namespace tileglu::tool
