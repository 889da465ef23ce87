// SPDX-License-Identifier: Apache-2.0
// The user's tuning cache: $TILEGLU_CACHE_DIR, $XDG_CACHE_HOME/tileglu or ~/.cache/tileglu, in it tuning.json.
#pragma once

#include "core/status.hpp"
#include "plan/tuning.hpp"

#include <filesystem>
#include <memory>

namespace tileglu::io {

// Empty if the environment names no folder.
std::filesystem::path tuning_cache_path();

// The table of a file; an empty one if there is no such file. Anything else that cannot be used is an error.
Result<TuningTable> read_tuning(const std::filesystem::path& path);

// Puts the rows into the file, in place of those with the same keys, under a lock (PATH.lock) that other writers wait
// for; the file is replaced whole or not at all. A file that read_tuning refuses is kept as PATH.bad.
Status add_tuning(const std::filesystem::path& path, const TuningTable& rows);

// The user's cache and the shipped table, read at the first call of this process. A cache that cannot be used counts as
// empty and is named, with the reason, in one line on standard error. Never throws.
const std::shared_ptr<const Tuning>& process_tuning() noexcept;

}  // namespace tileglu::io
