// SPDX-License-Identifier: Apache-2.0
// The command-line tool: parses, runs one sub-command, and turns whatever went wrong into one line and an exit code.
#include "build_info.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "output.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>

namespace tileglu::tool {
namespace {

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// CLI11 would call an unknown sub-command an unexpected argument; ours is told what there is.
Status check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return {Code::kInvalidArgument, "a sub-command is needed: " + command_names(app)};
  const std::string first = argv[1];
  if (first == "-h" || first == "--help" || first == "--version") return {};
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  const auto known = [&](const CLI::App* command) { return command->get_name() == first; };
  if (std::any_of(commands.begin(), commands.end(), known)) return {};
  return {Code::kInvalidArgument, formatted("unknown sub-command {}; there are {}", first, command_names(app))};
}

int refuse(const std::string& command, const Status& status) {
  print_error(command.empty() ? "tileglu" : "tileglu " + command, status.text());
  return exit_code(status);
}

int parse_error(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, ignored;
  if (app.exit(error, out, ignored) == 0) {  // --help, --version
    print(out.str());
    return kExitOk;
  }
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return refuse(parsed.empty() ? "" : parsed.front()->get_name(), {Code::kInvalidArgument, error.what()});
}

int run_action(const Action& action) {
  try {
    const Result<int> code = action.run();
    return code.ok() ? code.value() : refuse(action.command, code.status());
  } catch (const std::bad_alloc&) {
    return refuse(action.command, {Code::kOutOfMemory, "not enough memory for this size"});
  } catch (const std::exception& error) {
    return refuse(action.command, {Code::kInternalError, error.what()});
  }
}

int run(int argc, char** argv) {
  CLI::App app("tileglu: the gated projection of an LLM's MLP as one kernel");
  app.set_version_flag("--version", std::string("tileglu ") + TILEGLU_BUILD_VERSION + " (" TILEGLU_BUILD_COMMIT ")");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  Action action;
  for (const auto add : {add_info, add_models, add_run, add_verify, add_bench, add_tune, add_roofline, add_report,
                         add_pack, add_unpack}) {
    add(app, action);
  }
  if (const Status known = check_command(app, argc, argv); !known.ok()) return refuse("", known);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_error(app, error);
  }
  return run_action(action);
}

}  // namespace
}  // namespace tileglu::tool

int main(int argc, char** argv) {
  using namespace tileglu::tool;
  std::signal(SIGPIPE, SIG_IGN);
  reserve_standard_streams();
  const int code = run(argc, argv);
  const tileglu::Status written = finish_output();
  if (written.ok()) return code;
  print_error("tileglu", written.text());
  return code == kExitOk ? kExitCheckFailed : code;
}
