// SPDX-License-Identifier: Apache-2.0
#include "contenders.hpp"

#include "check.hpp"
#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "output.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <array>

namespace tileglu::tool {
namespace {

// The contract's names for kernels of the cublas backend.
struct Alias {
  const char* name;
  const char* kernel;
  Layout layout;
};
constexpr Alias kAliases[] = {{"cublas_merged", "merged", Layout::kGateUp},
                              {"cublas_two_gemms", "two_gemms_silu_mul", Layout::kSeparate}};
const Alias* find_alias(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kAliases), std::end(kAliases), [&](const Alias& a) { return name == a.name; });
  return found == std::end(kAliases) ? nullptr : found;
}

constexpr std::array kAllLayouts{Layout::kSeparate, Layout::kGateUp, Layout::kInterleaved8, Layout::kInterleaved1,
                                 Layout::kUpGate};

std::vector<Layout> all_layouts() {
  return {kAllLayouts.begin(), kAllLayouts.end()};
}

bool in_memory(const Backend& backend, Memory memory) {
  return (backend.id == BackendId::kCpu) == (memory == Memory::kHost);
}

// Of a contender's name: run with TILEGLU_PREFETCH_WEIGHTS, TILEGLU_BATCH_INVARIANT.
constexpr const char *kPrefetchSuffix = "+prefetch", *kInvariantSuffix = "+invariant";
bool take_suffix(std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

class Resolver {
 public:
  explicit Resolver(const ContenderRequest& request) : request_(request) {}

  Result<std::vector<Contender>> resolve() {
    if (!request_.names.empty()) {
      for (const std::string& name : request_.names) TILEGLU_TRY(add(name, true));
      return found_;
    }
    if (request_.common.kernel.empty()) {
      TILEGLU_TRY(add(kPlannersChoice, true));
      TILEGLU_TRY(add_families());
    } else if (request_.common.kernel == "all") {
      TILEGLU_TRY(add(kPlannersChoice, true));
      for (const Backend* backend : usable()) {
        for (const std::string& kernel : backend->kernels()) {
          if (!rounds_early(kernel)) TILEGLU_TRY(add(kernel, false));
        }
      }
    } else {
      TILEGLU_TRY(add(request_.common.kernel, true));
    }
    TILEGLU_TRY(add_baselines());
    return found_;
  }

 private:
  std::vector<const Backend*> usable() const { return backends_in(request_.memory, request_.common.backend); }
  std::vector<Layout> layouts_or(std::vector<Layout> preferred) const {
    return request_.layout ? std::vector<Layout>{*request_.layout} : std::move(preferred);
  }
  bool known(const std::string& name) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Contender& c) { return c.name == name; });
  }

  // Each family of fused kernels by its best configuration.
  Status add_families() {
    if (request_.memory == Memory::kHost) return {};
    for (const Backend* backend : usable()) {
      for (const std::string& kernel : backend->kernels()) {
        if (const std::string family(family_of(kernel)); !family.empty()) TILEGLU_TRY(add(family, false));
      }
    }
    return {};
  }

  Status add_baselines() {
    if (request_.memory == Memory::kHost) {
      for (const Backend* backend : usable()) {
        for (const std::string& kernel : backend->kernels()) {
          if (rounds_early(kernel)) TILEGLU_TRY(add(kernel, false));
        }
      }
      return {};
    }
    if (!find_backend(BackendId::kCublas)->available().ok()) return {};
    TILEGLU_TRY(add(kGemmOnly, false));
    for (const Alias& alias : kAliases) TILEGLU_TRY(add(alias.name, false));
    return {};
  }

  Status add(const std::string& full_name, bool required) {
    if (known(full_name)) return {};
    Contender contender{.name = full_name, .required = required};
    std::string name = full_name;
    const bool prefetch = take_suffix(name, kPrefetchSuffix), invariant = take_suffix(name, kInvariantSuffix);
    if (name == kPlannersChoice) {
      TILEGLU_TRY(planners_choice(contender));
    } else if (name == kGemmOnly) {
      TILEGLU_TRY(need(BackendId::kCublas, name));
      contender.layouts = layouts_or({Layout::kGateUp});
      contender.baseline = true;
    } else if (const Alias* alias = find_alias(name); alias != nullptr) {
      TILEGLU_TRY(add_alias(*alias, contender));
    } else {
      TILEGLU_TRY(kernel(name, contender));
    }
    for (PlanOptions& options : contender.options) {
      options.prefetch_weights = prefetch;
      options.batch_invariant = invariant;
    }
    found_.push_back(std::move(contender));
    return {};
  }

  Status planners_choice(Contender& contender) const {
    contender.layouts = layouts_or(request_.memory == Memory::kHost ? std::vector{Layout::kSeparate} : all_layouts());
    // A fused kernel in whatever layout it takes, before an unfused one in the layout of the checkpoint.
    if (request_.memory == Memory::kCuda && request_.common.backend == BackendId::kAuto) {
      contender.options.push_back({.backend = BackendId::kSm90, .kernel = {}});
    }
    contender.options.push_back({.backend = request_.common.backend, .kernel = {}});
    return {};
  }

  Status add_alias(const Alias& alias, Contender& contender) const {
    TILEGLU_TRY(need(BackendId::kCublas, alias.name));
    contender.options.push_back({.backend = BackendId::kCublas, .kernel = alias.kernel});
    contender.layouts = layouts_or({alias.layout});
    contender.baseline = true;
    return {};
  }

  Status kernel(const std::string& name, Contender& contender) const {
    std::vector<std::string> names{kPlannersChoice, kGemmOnly};
    for (const Alias& known : kAliases) names.emplace_back(known.name);
    for (const Backend* backend : backends()) {
      for (const std::string& kernel : backend->kernels()) {
        names.push_back(kernel);
        if (!kernel_matches(kernel, name)) continue;
        TILEGLU_TRY(need(backend->id, name));
        contender.options.push_back({.backend = backend->id, .kernel = name});
        contender.layouts = layouts_or(all_layouts());
        contender.baseline = rounds_early(name);
        return {};
      }
    }
    return bad_argument(request_.names.empty() ? "--kernel" : "--contenders", name,
                        formatted("unknown; must be one of {}", joined(names)));
  }

  Status need(BackendId id, const std::string& name) const {
    const Backend& backend = *find_backend(id);
    if (const Status status = backend.available(); !status.ok()) {
      return {Code::kNotAvailable, formatted("{}: backend {} is not available: {}", name, backend.name, status.text())};
    }
    if (in_memory(backend, request_.memory)) return {};
    return bad_argument("--backend", name_of(request_.common.backend),
                        formatted("{} belongs to backend {}, whose operands lie in other memory", name, backend.name));
  }

  const ContenderRequest& request_;
  std::vector<Contender> found_;
};

}  // namespace

Result<std::vector<Contender>> resolve_contenders(const ContenderRequest& request) {
  return Resolver(request).resolve();
}

Result<Entrant> Entrant::make(const Contender& contender, SyntheticData& data) {
  Entrant entrant;
  if (contender.options.empty()) {
    entrant.layout_ = contender.layouts.front();
    const ExtraOperands& extra = data.problem(entrant.layout_).extra;
    if (extra.bias_gate || extra.bias_up || extra.addend) {
      return Status(Code::kNotSupported, formatted("{} has no biases and no addend", contender.name));
    }
    TILEGLU_TRY(data.add_layout(entrant.layout_));
    Result<GemmOnlyCall> gemm = GemmOnlyCall::make(data.problem(entrant.layout_));
    if (!gemm.ok()) return gemm.status();
    entrant.gemm_ = std::move(gemm.value());
    return entrant;
  }
  Status refused;
  for (const PlanOptions& options : contender.options) {
    const Result<Layout> layout = layout_for(data.problem(contender.layouts.front()), options, contender.layouts);
    if (!layout.ok()) {
      refused = layout.status();
      continue;
    }
    entrant.layout_ = layout.value();
    TILEGLU_TRY(data.add_layout(entrant.layout_));
    Result<Call> call = Call::plan(data.problem(entrant.layout_), options);
    if (!call.ok()) return call.status();
    entrant.call_ = std::move(call.value());
    return entrant;
  }
  return refused;
}

std::string Entrant::config() const {
  if (call_) return call_->kernel();
  return formatted("algorithm_{}_of_{}", algorithm_, gemm_->algorithms());
}

Status Entrant::run(const Operands& operands) const {
  return call_ ? call_->run(operands) : gemm_->run(operands, algorithm_);
}

}  // namespace tileglu::tool
