#pragma once

#include <string>
#include <string_view>

namespace nam::cli {

/// The COPY for the arguments of psql's \copy: a file's name needs no quotes there, and pstdin and pstdout
/// are the client's own standard input and output, as STDIN and STDOUT are here.
std::string CopyStatementOf(std::string_view arguments);

}  // namespace nam::cli
