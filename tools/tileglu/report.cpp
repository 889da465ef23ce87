// SPDX-License-Identifier: Apache-2.0
// tileglu report DIR: the page of a study, by the renderer of the study's Python package (docs/study.md says why
// there).
#include "child_process.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "json_output.hpp"
#include "output.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace tileglu::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPythonVariable = "TILEGLU_PYTHON";

struct ReportOptions {
  CommonOptions common;
  std::string folder, python;
};

// The package beside this executable: in the source tree of a build, in an installation, in a wheel.
constexpr const char* kPlaces[] = {"../../study", "../share/tileglu/study", "../../tileglu_study"};

Result<fs::path> find_package() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const char* place : kPlaces) {
    const fs::path folder = (self.parent_path() / place).lexically_normal();
    if (fs::exists(folder / "report" / "render.py", error)) return folder;
  }
  return Status(Code::kNotAvailable, formatted("the study's Python package is not installed beside {} ({}, {} or {})",
                                               self.string(), kPlaces[0], kPlaces[1], kPlaces[2]));
}

std::string python_of(const ReportOptions& options) {
  if (!options.python.empty()) return options.python;
  const char* chosen = std::getenv(kPythonVariable);
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// Before whatever the user has there.
std::string python_path(const fs::path& folder) {
  const char* before = std::getenv("PYTHONPATH");
  return before == nullptr || *before == '\0' ? folder.string() : folder.string() + ":" + before;
}

Code code_of(int exit_code) {
  if (exit_code == kExitUsage) return Code::kInvalidArgument;
  return exit_code == kExitUnavailable ? Code::kNotAvailable : Code::kInternalError;
}

// The renderer's last line without its own name; a traceback ends with what went wrong, too.
std::string reason_of(const std::string& error) {
  const std::size_t end = error.find_last_not_of('\n');
  if (end == std::string::npos) return "the renderer said nothing";
  const std::size_t before = error.find_last_of('\n', end);
  std::string line = error.substr(before == std::string::npos ? 0 : before + 1, end - before);
  constexpr std::string_view kName = "study: ";
  return one_line(line.starts_with(kName) ? line.substr(kName.size()) : line);
}

Result<int> report(const ReportOptions& options) {
  std::error_code error;
  const fs::path folder = options.folder;
  if (!fs::is_directory(folder, error)) return bad_argument("DIR", options.folder, "is no folder");
  if (!fs::exists(folder / "study.json", error)) {
    return bad_argument("DIR", options.folder, "holds no study: there is no study.json (python3 -m study run DIR)");
  }
  const Result<fs::path> package = find_package();
  if (!package.ok()) return package.status();
  const std::string module = package.value().filename().string();
  const Result<Finished> rendered =
      run_program({python_of(options), "-m", module, "render", options.folder, "--json"},
                  {{"PYTHONPATH", python_path(package.value().parent_path())}, {"PYTHONDONTWRITEBYTECODE", "1"}});
  if (!rendered.ok()) {
    return Status(Code::kNotAvailable,
                  formatted("needs Python: {} (--python, or {})", rendered.status().text(), kPythonVariable));
  }
  if (rendered.value().code != kExitOk)
    return Status(code_of(rendered.value().code), reason_of(rendered.value().error));
  const Json files = Json::parse(rendered.value().out, nullptr, false);
  if (!files.is_object() || !files.contains("files")) {
    return Status(Code::kInternalError, formatted("the renderer printed '{}'", one_line(rendered.value().out)));
  }
  if (options.common.json) {
    Json document = make_document("report");
    document["files"] = files["files"];
    print_document(document);
  } else {
    for (const Json& file : files["files"]) print(file.get<std::string>() + "\n");
  }
  return kExitOk;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App& command = *app.add_subcommand("report", "Write the page of a study: DIR/report.html and DIR/report.md");
  add_common_options(command, options->common);
  command.add_option("DIR", options->folder, "What 'python3 -m study run DIR' has measured")->required();
  command
      .add_option("--python", options->python, "Interpreter with matplotlib (default: TILEGLU_PYTHON, else python3)")
      ->type_name("PROGRAM");
  command.callback([options, &action] { action = {"report", [options] { return report(*options); }}; });
}

}  // namespace tileglu::tool
