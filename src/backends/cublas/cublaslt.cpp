// SPDX-License-Identifier: Apache-2.0
#include "backends/cublas/cublaslt.hpp"

#include "core/format.hpp"
#include "runtime/device_guard.hpp"

#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>

namespace tileglu::cublas {
namespace {

struct Library {
  Api api;
  Status status;
};

void* open_library(std::string& tried) {
  for (const char* name : std::array{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
    tried += tried.empty() ? name : formatted(", {}", name);
  }
  return nullptr;
}

// Remembers the first name that is missing.
class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}
  template <class Function>
  void operator()(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

Library load_library() {
  Library loaded;
  std::string tried;
  void* library = open_library(tried);
  if (library == nullptr) {
    const char* reason = dlerror();
    loaded.status = {Code::kNotAvailable, formatted("cuBLASLt is not installed or not on the library path (tried {}; "
                                                    "last error: {})",
                                                    tried, reason == nullptr ? "none" : reason)};
    return loaded;
  }
  Resolver resolve(library);
  Api& api = loaded.api;
  resolve("cublasLtCreate", api.create);
  resolve("cublasLtGetVersion", api.get_version);
  resolve("cublasLtGetStatusName", api.status_name);
  resolve("cublasLtMatmul", api.matmul);
  resolve("cublasLtMatmulAlgoGetHeuristic", api.matmul_algo_get_heuristic);
  resolve("cublasLtMatmulDescCreate", api.matmul_desc_create);
  resolve("cublasLtMatmulDescDestroy", api.matmul_desc_destroy);
  resolve("cublasLtMatmulDescSetAttribute", api.matmul_desc_set_attribute);
  resolve("cublasLtMatrixLayoutCreate", api.matrix_layout_create);
  resolve("cublasLtMatrixLayoutDestroy", api.matrix_layout_destroy);
  resolve("cublasLtMatmulPreferenceCreate", api.matmul_preference_create);
  resolve("cublasLtMatmulPreferenceDestroy", api.matmul_preference_destroy);
  resolve("cublasLtMatmulPreferenceSetAttribute", api.matmul_preference_set_attribute);
  if (!resolve.missing().empty()) {
    loaded.status = {Code::kNotAvailable, formatted("the cuBLASLt that was found has no {}", resolve.missing())};
  }
  return loaded;
}

const Library& library() {
  static const Library loaded = load_library();
  return loaded;
}

}  // namespace

Status load() {
  return library().status;
}

const Api& api() {
  return library().api;
}

std::string description() {
  const std::size_t version = api().get_version();  // 130100 is 13.1.0
  return formatted("cuBLASLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Status check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  (void)cudaGetLastError();
  const Code code = status == CUBLAS_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kCudaError;
  return {code, formatted("{}: {}", call, api().status_name(status))};
}

Result<cublasLtHandle_t> handle(int device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  TILEGLU_TRY(load());
  const std::lock_guard lock(mutex);
  if (const auto found = handles.find(device); found != handles.end()) return found->second;
  const runtime::DeviceGuard guard(device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;
  cublasLtHandle_t created = nullptr;
  TILEGLU_TRY(check(api().create(&created), "cublasLtCreate"));
  handles.emplace(device, created);
  return created;
}

}  // namespace tileglu::cublas
