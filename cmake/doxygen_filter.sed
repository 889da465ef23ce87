# SPDX-License-Identifier: Apache-2.0
# Shows Doxygen the comments of tileglu.h and tileglu.hpp as documentation: before a line, or behind it on the same line.
/SPDX-License-Identifier/{
  s|^/\*.*|/** @file|
  s|^//.*|/// @file|
}
/^ *}.*\/\/ namespace/d
\|^/\* ---.*--- \*/$|d
\|^ *//|{
  s|//|///|
  b
}
s|^\( *\)/\* |\1/** |
t
s|/\* |/**< |
s|// |///< |
