// SPDX-License-Identifier: Apache-2.0
// The cpu backend as the library sees it: a module that is opened once per process, on first use, so that the library
// starts on machines without oneDNN.
#include "backends/cpu/module.hpp"
#include "core/format.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>

namespace tileglu {
namespace {

struct Loaded {
  const cpu::Module* module = nullptr;  // null: status says why
  Status status;
};

Status not_available(const std::string& reason) {
  return {Code::kNotAvailable, "cpu backend: " + reason};
}

// Folder of the library or executable that holds this code; empty if it cannot be found out.
std::filesystem::path own_folder() {
  Dl_info info{};
  link_map* map = nullptr;
  std::error_code error;
  if (dladdr1(&kCpuBackend, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  // The executable itself has no name in the link map, and argv[0], which dladdr gives, need not be a path.
  const bool executable = map->l_name == nullptr || *map->l_name == '\0';
  const std::filesystem::path file =
      executable ? std::filesystem::read_symlink("/proc/self/exe", error) : std::filesystem::path(map->l_name);
  return error ? std::filesystem::path() : file.parent_path();
}

// Beside us, where an installed tool finds the libraries, or wherever the loader looks.
std::string module_path() {
  const std::filesystem::path folder = own_folder();
  for (const char* relative : {".", TILEGLU_BIN_TO_LIB}) {
    const std::filesystem::path candidate = folder / relative / cpu::kModuleFile;
    if (!folder.empty() && access(candidate.c_str(), F_OK) == 0) return candidate.string();
  }
  return cpu::kModuleFile;
}

Loaded load() {
  const std::string path = module_path();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: plans live as long as they like
  if (handle == nullptr) {
    const char* error = dlerror();
    const std::string text = error != nullptr ? error : "dlopen failed";
    const bool missing = path == cpu::kModuleFile && text.starts_with(path);
    return {.status = not_available(missing ? formatted("this build has no cpu backend ({})", text) : text)};
  }
  const auto* module = static_cast<const cpu::Module*>(dlsym(handle, cpu::kModuleSymbol));
  if (module == nullptr || module->tag == nullptr || std::string_view(module->tag) != cpu::kModuleTag) {
    return {.status = not_available(formatted("{} was built for '{}', this library is '{}'", path,
                                              module == nullptr || module->tag == nullptr ? "?" : module->tag,
                                              cpu::kModuleTag))};
  }
  return {.module = module, .status = {}};
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

std::span<const std::string> no_kernels() {
  return {};
}

}  // namespace

const Backend kCpuBackend = {
    .id = BackendId::kCpu,
    .name = "cpu",
    .available = [] { return loaded().status; },
    .kernels = [] { return loaded().module != nullptr ? loaded().module->kernels() : no_kernels(); },
    .plan = [](const Problem& problem, const PlanOptions& options) -> Result<std::unique_ptr<Plan>> {
      if (loaded().module == nullptr) return loaded().status;
      return loaded().module->plan(problem, options);
    },
};

}  // namespace tileglu
