// SPDX-License-Identifier: Apache-2.0
#include "json_output.hpp"

#include "build_info.hpp"
#include "output.hpp"

namespace tileglu::tool {

Json make_document(const std::string& command) {
  return {{"schema_version", kSchemaVersion},
          {"command", command},
          {"version", TILEGLU_BUILD_VERSION},
          {"commit", TILEGLU_BUILD_COMMIT}};
}

std::string to_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_document(const Json& document) {
  print(to_text(document));
}

Json to_json(const reference::ErrorReport& report) {
  return {{"relative_frobenius", report.relative_frobenius},
          {"worst_stripe", report.worst_stripe},
          {"share_over_1_percent", report.share_over_1_percent},
          {"max_ulp", report.max_ulp},
          {"not_finite", report.not_finite},
          {"unwritten", report.unwritten}};
}

}  // namespace tileglu::tool
