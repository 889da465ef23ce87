// SPDX-License-Identifier: Apache-2.0
// Of builds with TILEGLU_SANITIZE only. The leak check at exit takes the thread-local storage of OpenMP's idle threads
// for something that it is not and crashes (gcc 12, glibc 2.36); without this interception it works, and still finds
// leaks.
extern "C" __attribute__((visibility("default"))) const char*
__asan_default_options();  // NOLINT(bugprone-reserved-identifier)
const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}
