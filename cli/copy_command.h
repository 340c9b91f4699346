#pragma once

#include <string>
#include <string_view>

namespace nam::cli {

/// The COPY for the arguments of psql's \copy: a file's name needs no quotes there, and pstdin and pstdout
/// are the client's own standard input and output, as STDIN and STDOUT are here.
std::string CopyStatementOf(std::string_view arguments);

/// Whether the arguments of \copy name the process's standard input: psql's pstdin, while stdin is what the
/// statement itself came from.
bool TakesProcessInput(std::string_view arguments);

/// Whether a statement is COPY … FROM STDIN.
bool CopiesFromInput(const std::string& statement);

}  // namespace nam::cli
