// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "arguments.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "models.hpp"
#include "output.hpp"
#include "runtime/runtime.hpp"

#include <cctype>

namespace tileglu::tool {
namespace {

constexpr std::int64_t kMaxTokens = 2147483647;
constexpr std::int64_t kMaxWidth = 1 << 24;  // so that no byte count of a matrix overflows 63 bits
constexpr std::int64_t kMaxSeed = 1LL << 32;
constexpr int kMaxDevice = 1023;
constexpr int kMaxTp = 1024;

}  // namespace

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print one JSON document instead of text");
  add_choice(command, "--backend", options.backend, backend_named, "auto, sm90, cublas, cpu", "Where to compute");
  command.add_option("--kernel", options.kernel, "Kernel family or configuration (see 'tileglu info'), or all")
      ->type_name("NAME");
  add_choice(command, "--activation", options.activation, activation_named,
             "silu, gelu_tanh, gelu_erf, relu, sigmoid, identity, swiglu", "Gate activation");
  add_choice(command, "--dtype", options.dtype, dtype_named, "bf16, fp16, fp32", "Type of A and of the weights");
  add_integer(command, "--device", options.device, {.low = 0, .high = kMaxDevice}, "CUDA device");
}

void add_shape_options(CLI::App& command, ShapeOptions& options, std::int64_t smallest) {
  add_text_list(command, "--model", options.models, "Take n and k from a model that 'tileglu models' lists");
  add_integer(command, "--tp", options.tp, {.low = 1, .high = kMaxTp}, "Ranks that n is divided among");
  const IntegerRange range{.low = smallest, .high = kMaxWidth};
  add_integer_list(command, "--m", options.m, {.low = smallest, .high = kMaxTokens},
                   "Tokens (rows of A and Y); a list is allowed");
  add_integer(command, "--n", options.n, range, "Columns of Y (rows of gate, and of up)");
  add_integer(command, "--k", options.k, range, "Depth (columns of A)");
}

void add_layout_option(CLI::App& command, std::optional<Layout>& layout, const std::string& help) {
  add_choice(command, "--layout", layout, layout_named, "separate, gate_up, up_gate, interleaved_1, interleaved_8",
             help);
}

void add_seed_option(CLI::App& command, std::uint64_t& seed) {
  add_integer(command, "--seed", seed, {.low = 0, .high = kMaxSeed}, "Seed of the random data");
}

Problem contiguous(Problem problem, const Shape& shape) {
  problem.m = shape.m, problem.n = shape.n, problem.k = shape.k;
  problem.lda = problem.ld_gate = problem.ld_up = shape.k;
  problem.ldy = shape.n;
  return problem;
}

Result<std::vector<Shape>> resolve_shapes(const ShapeOptions& options, std::vector<std::int64_t> default_m) {
  if (!options.models.empty() && (options.n || options.k)) {
    return bad_argument("--model", options.models.front(), "gives n and k; leave out --n and --k");
  }
  if (options.models.empty() && (!options.n || !options.k)) {
    return Status(Code::kInvalidArgument, "a shape is needed: --model NAME, or --n and --k");
  }
  std::vector<Shape> bases;
  for (const std::string& name : options.models) {
    const Result<Model> model = find_model(name);
    if (!model.ok()) return model.status();
    const Model& found = model.value();
    bases.push_back({.model = std::string(found.name), .n = found.n, .k = found.k, .activation = found.activation});
  }
  if (options.models.empty()) bases.push_back({.n = *options.n, .k = *options.k});

  std::vector<Shape> shapes;
  for (Shape& base : bases) {
    const Result<std::int64_t> width = shard_width(base.n, options.tp);
    if (!width.ok()) return width.status();
    base.n = width.value();
    for (const std::int64_t m : options.m.empty() ? default_m : options.m) {
      shapes.push_back(base);
      shapes.back().m = m;
    }
  }
  return shapes;
}

Result<Memory> resolve_memory(const CommonOptions& options) {
  if (options.backend == BackendId::kAuto && !runtime::cuda_status().ok()) {
    const Status cpu = find_backend(BackendId::kCpu)->available();
    if (!cpu.ok()) return Status(Code::kNotAvailable, "no GPU, and the cpu backend is missing: " + cpu.text());
    return Memory::kHost;
  }
  if (options.backend != BackendId::kAuto) {
    const Status available = find_backend(options.backend)->available();
    if (!available.ok()) {
      return Status(Code::kNotAvailable, formatted("--backend={}: {}", name_of(options.backend), available.text()));
    }
  }
  if (options.backend == BackendId::kCpu) return Memory::kHost;
  if (options.device >= runtime::device_count()) {
    return Status(Code::kNotAvailable, formatted("--device={}: this machine has {} usable GPU(s), counted from 0",
                                                 options.device, runtime::device_count()));
  }
  return Memory::kCuda;
}

std::vector<const Backend*> backends_in(Memory memory, BackendId chosen) {
  std::vector<const Backend*> found;
  for (const Backend* backend : backends()) {
    const bool fits = (backend->id == BackendId::kCpu) == (memory == Memory::kHost);
    if (fits && (chosen == BackendId::kAuto || chosen == backend->id) && backend->available().ok()) {
      found.push_back(backend);
    }
  }
  return found;
}

std::string_view family_of(std::string_view kernel) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 1; i < kernel.size(); ++i) {
    if (kernel[i - 1] == '_' && is_digit(kernel[i])) return kernel.substr(0, i - 1);
  }
  return {};
}

bool kernel_matches(std::string_view kernel, std::string_view name) {
  return kernel == name || (!name.empty() && family_of(kernel) == name);
}

Result<std::vector<NamedKernel>> kernels_named(const std::vector<const Backend*>& backends, const std::string& name) {
  std::vector<NamedKernel> found;
  std::vector<std::string> known;
  for (const Backend* backend : backends) {
    for (const std::string& kernel : backend->kernels()) {
      known.push_back(kernel);
      if (name == "all" || kernel_matches(kernel, name)) found.push_back({.backend = backend, .kernel = kernel});
    }
  }
  if (!found.empty()) return found;
  return bad_argument("--kernel", name, formatted("unknown here; must be all or one of {}", joined(known)));
}

}  // namespace tileglu::tool
