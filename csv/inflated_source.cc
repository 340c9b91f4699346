#include "csv/inflated_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr size_t kInputBytes = 256 << 10;

/// The common part of both formats: the compressed bytes, and the reader's place in them.
class InflatedSource : public ByteSource {
 public:
  explicit InflatedSource(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), input_(kInputBytes) {}

  absl::StatusOr<size_t> Read(char* into, size_t bytes) final {
    while (bytes > 0) {
      if (at_ == end_) {
        NAM_ASSIGN_OR_RETURN(end_, compressed_->Read(input_.data(), input_.size()));
        at_ = 0;
        if (end_ == 0) {
          if (whole_) return 0;
          return Bad("ends in the middle: it was cut off");
        }
      }
      NAM_ASSIGN_OR_RETURN(const size_t made, Unpack(into, bytes));
      if (made > 0) return made;
    }
    return 0;
  }
  const std::string& name() const final { return compressed_->name(); }
  uint64_t bytes() const final { return 0; }

 protected:
  /// Unpacks some of the input; returns the number of bytes, perhaps 0.
  virtual absl::StatusOr<size_t> Unpack(char* into, size_t bytes) = 0;
  absl::Status Bad(const std::string& what) const {
    return UserError(sqlstate::kBadCopyFormat, absl::StrCat(name(), ": the compressed file ", what), -1,
                     "unpack it by itself to see what is wrong");
  }

  const std::unique_ptr<ByteSource> compressed_;
  std::vector<char> input_;
  size_t at_ = 0, end_ = 0;  // in the input
  bool whole_ = false;       // a member, or frame, has ended and no other one has begun
};

class GzipSource final : public InflatedSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> compressed) : InflatedSource(std::move(compressed)) {
    constexpr int kGzipHeader = 16;
    NAM_CHECK(inflateInit2(&stream_, MAX_WBITS + kGzipHeader) == Z_OK, "no memory for a gzip window");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

 private:
  absl::StatusOr<size_t> Unpack(char* into, size_t bytes) override {
    if (std::exchange(whole_, false)) inflateReset(&stream_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + at_);
    stream_.avail_in = static_cast<uInt>(end_ - at_);
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, size_t{1} << 30));
    const uInt room = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    at_ = end_ - stream_.avail_in;
    whole_ = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return Bad("is not gzip, or is damaged");
    return room - stream_.avail_out;
  }

  z_stream stream_ = {};
};

class ZstdSource final : public InflatedSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> compressed)
      : InflatedSource(std::move(compressed)), stream_(ZSTD_createDStream()) {
    NAM_CHECK(stream_ != nullptr, "no memory for a zstd window");
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

 private:
  absl::StatusOr<size_t> Unpack(char* into, size_t bytes) override {
    ZSTD_inBuffer in{input_.data(), end_, at_};
    ZSTD_outBuffer out{into, bytes, 0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    at_ = in.pos;
    if (ZSTD_isError(result) != 0)
      return Bad(absl::StrCat("is not zstd, or is damaged: ", ZSTD_getErrorName(result)));
    whole_ = result == 0;
    return out.pos;
  }

  ZSTD_DStream* const stream_;
};

}  // namespace

Compression CompressionOf(std::string_view path) {
  const absl::string_view name(path.data(), path.size());
  if (absl::EndsWithIgnoreCase(name, ".gz")) return Compression::kGzip;
  if (absl::EndsWithIgnoreCase(name, ".zst")) return Compression::kZstd;
  return Compression::kNone;
}

std::string_view WithoutCompression(std::string_view path) {
  return CompressionOf(path) == Compression::kNone ? path : path.substr(0, path.rfind('.'));
}

std::unique_ptr<ByteSource> Inflate(std::unique_ptr<ByteSource> compressed, Compression compression) {
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      return std::make_unique<GzipSource>(std::move(compressed));
    case Compression::kZstd:
      return std::make_unique<ZstdSource>(std::move(compressed));
  }
  return compressed;
}

}  // namespace nam::csv
