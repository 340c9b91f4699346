#pragma once

#include <cstddef>
#include <string_view>

#include "csv/dialect.h"

namespace nam::csv {

/// The end of the last whole row in `text`: after its line end; 0 if there is none. `text` begins with a row.
///
///     1,"a          2,b           3,"c
///     b",x ⏎        …    ⏎        d
///                         └ here     the quote is open: this line end is a field's
/// Where only quotes at a field's begin count, such a one that is never closed holds the rest.
size_t EndOfLastRow(std::string_view text, const Dialect& dialect);

/// Where a quoted field ends whose text begins at `at`, behind its quote: at the quote that closes it; npos
/// if none does. A quote is text behind an escape.
size_t ClosingQuote(std::string_view text, size_t at, const Dialect& dialect);

}  // namespace nam::csv
