// SPDX-License-Identifier: Apache-2.0
// Typed command-line arguments on top of CLI11, all refusing in one form: "--name=value: rule".
#pragma once

#include "core/format.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tileglu::tool {

struct IntegerRange {
  std::int64_t low = 0, high = 0;
};

// The whole text as an integer inside the range; CLI::ValidationError otherwise.
std::int64_t parse_integer(const std::string& name, std::string_view text, IntegerRange range);
struct NumberRange {
  double low = 0, high = 0;
};
double parse_number(const std::string& name, std::string_view text, NumberRange range);
// "a,b,c"; an empty element is refused.
std::vector<std::string> split_list(const std::string& name, const std::string& text);

template <class T>
CLI::Option* add_integer(CLI::App& command, const std::string& name, T& target, IntegerRange range,
                         const std::string& help) {
  const auto parse = [name, &target, range](const std::string& text) {
    target = static_cast<T>(parse_integer(name, text, range));
  };
  return command.add_option_function<std::string>(name, parse, help)->type_name("INT");
}

template <class T>
CLI::Option* add_integer(CLI::App& command, const std::string& name, std::optional<T>& target, IntegerRange range,
                         const std::string& help) {
  const auto parse = [name, &target, range](const std::string& text) {
    target = static_cast<T>(parse_integer(name, text, range));
  };
  return command.add_option_function<std::string>(name, parse, help)->type_name("INT");
}

CLI::Option* add_integer_list(CLI::App& command, const std::string& name, std::vector<std::int64_t>& target,
                              IntegerRange range, const std::string& help);
CLI::Option* add_text_list(CLI::App& command, const std::string& name, std::vector<std::string>& target,
                           const std::string& help);

template <class Target>  // double or std::optional<double>
CLI::Option* add_number(CLI::App& command, const std::string& name, Target& target, NumberRange range,
                        const std::string& help) {
  const auto parse = [name, &target, range](const std::string& text) { target = parse_number(name, text, range); };
  return command.add_option_function<std::string>(name, parse, help)->type_name("NUMBER");
}

// `named` turns a text into std::optional<T>; `choices` is what the help and the refusal list.
template <class Target, class Named>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Target& target, Named named,
                        const std::string& choices, const std::string& help) {
  const auto parse = [name, &target, named, choices](const std::string& text) {
    const auto value = named(std::string_view(text));
    if (!value) throw CLI::ValidationError(formatted("{}={}", name, text), "must be one of " + choices);
    target = *value;
  };
  return command.add_option_function<std::string>(name, parse, help + ": " + choices)->type_name("NAME");
}

}  // namespace tileglu::tool
