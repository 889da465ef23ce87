// SPDX-License-Identifier: Apache-2.0
// Options that the sub-commands share, and what follows from them: shapes, the place of the operands, the kernels.
#pragma once

#include "backends/backend.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tileglu::tool {

struct CommonOptions {
  bool json = false;
  BackendId backend = BackendId::kAuto;
  std::string kernel;  // empty: the planner's choice; "all" where a command can walk them
  std::optional<Activation> activation;
  std::optional<Dtype> dtype;
  int device = 0;
};

struct ShapeOptions {
  std::vector<std::string> models;
  int tp = 1;
  std::vector<std::int64_t> m;
  std::optional<std::int64_t> n, k;
  bool given() const { return !models.empty() || n || k || !m.empty(); }
};

struct Shape {
  std::string model = {};  // empty if given as numbers
  std::int64_t m = 0, n = 0, k = 0;
  Activation activation = Activation::kSilu;  // the model's
};
// `problem` with the sizes of `shape` and no gaps between rows.
Problem contiguous(Problem problem, const Shape& shape);

// The one action that parsing chose; it returns the exit code or why it could not go on.
struct Action {
  std::string command;
  std::function<Result<int>()> run;
};

void add_common_options(CLI::App& command, CommonOptions& options);
void add_shape_options(CLI::App& command, ShapeOptions& options, std::int64_t smallest);
void add_layout_option(CLI::App& command, std::optional<Layout>& layout, const std::string& help);
void add_seed_option(CLI::App& command, std::uint64_t& seed);

// Every model (or the one n, k) with every m, in that order.
Result<std::vector<Shape>> resolve_shapes(const ShapeOptions& options, std::vector<std::int64_t> default_m);

// Where the operands go: --backend decides, auto takes a GPU if there is one. Refuses a backend that is not available
// (kNotAvailable) and a device that does not exist.
Result<Memory> resolve_memory(const CommonOptions& options);
// The backends that a command walks with --kernel all: the chosen one, or for auto all available ones in that memory.
std::vector<const Backend*> backends_in(Memory memory, BackendId chosen);
// "decode" of "decode_16x128_cooperative_c1x1": what comes before the first number; empty if the name has none.
std::string_view family_of(std::string_view kernel);
// Whether `name` is the kernel `kernel`, or its family.
bool kernel_matches(std::string_view kernel, std::string_view name);
// Kernels called `name` ("all": every one) of these backends; kInvalidArgument, listing the names, if there is none.
struct NamedKernel {
  const Backend* backend = nullptr;
  std::string kernel;
};
Result<std::vector<NamedKernel>> kernels_named(const std::vector<const Backend*>& backends, const std::string& name);

}  // namespace tileglu::tool
