#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "csv/byte_source.h"
#include "csv/dialect.h"

namespace nam::csv {

/// The compression that the suffix of a file's name implies: `.gz`, `.zst`, else none.
Compression CompressionOf(std::string_view path);
/// The compression that the dialect sets, or else the one that the name implies.
inline Compression CompressionOf(std::string_view path, const Dialect& dialect) {
  return dialect.compression.value_or(CompressionOf(path));
}
/// `a.csv` for `a.csv.gz`.
std::string_view WithoutCompression(std::string_view path);

/// Unpacks a compressed file: all gzip members, or zstd frames, one after the other. 22P04 if it is not
/// compressed, damaged, or truncated. Takes no more memory than the format's window, 128 MiB at most.
std::unique_ptr<ByteSource> Inflate(std::unique_ptr<ByteSource> compressed, Compression compression);

}  // namespace nam::csv
