# SPDX-License-Identifier: Apache-2.0
"""The study: every claim of the paper that tileglu comes from (arXiv 2607.02521), measured beside what people use
instead.

    python3 -m study run DIR [--quick]      # measures; resumes where it was interrupted
    tileglu report DIR                      # DIR/report.html and DIR/report.md from what DIR holds

docs/study.md says what is measured and how. Who needs what: run needs the package tileglu, and torch for the
contenders of torch; render needs matplotlib and nothing else.
"""
