# SPDX-License-Identifier: Apache-2.0
"""The page: sections of text, tables and figures, made once and written twice (HTML, Markdown). Imports neither torch
nor tileglu, so that any machine with matplotlib can render what another one measured."""
