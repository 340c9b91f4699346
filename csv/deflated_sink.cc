#include <zlib.h>
#include <zstd.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "csv/byte_sink.h"

/// Sinks that compress.
namespace nam::csv {
namespace {

constexpr size_t kOutputBytes = 256 << 10;

class GzipSink final : public ByteSink {
 public:
  explicit GzipSink(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)), output_(kOutputBytes) {
    constexpr int kGzipHeader = 16, kMemory = 8, kFast = 3;
    NAM_CHECK(deflateInit2(&stream_, kFast, Z_DEFLATED, MAX_WBITS + kGzipHeader, kMemory,
                           Z_DEFAULT_STRATEGY) == Z_OK,
              "no memory for a gzip window");
  }
  ~GzipSink() override { deflateEnd(&stream_); }

  absl::Status Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, size_t{1} << 30);  // as many as its counter holds
      NAM_RETURN_IF_ERROR(Pass(part, Z_NO_FLUSH));
      bytes.remove_prefix(part.size());
    }
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    NAM_RETURN_IF_ERROR(Pass({}, Z_FINISH));
    return sink_->Finish();
  }

 private:
  absl::Status Pass(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    int result = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      result = deflate(&stream_, flush);
      NAM_CHECK(result != Z_STREAM_ERROR, "a gzip stream that was overwritten");
      NAM_RETURN_IF_ERROR(sink_->Write({output_.data(), output_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> sink_;
  std::vector<char> output_;
  z_stream stream_ = {};
};

class ZstdSink final : public ByteSink {
 public:
  explicit ZstdSink(std::unique_ptr<ByteSink> sink)
      : sink_(std::move(sink)), output_(kOutputBytes), stream_(ZSTD_createCStream()) {
    NAM_CHECK(stream_ != nullptr, "no memory for a zstd window");
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdSink() override { ZSTD_freeCStream(stream_); }

  absl::Status Write(std::string_view bytes) override {
    return bytes.empty() ? absl::OkStatus() : Pass(bytes, ZSTD_e_continue);
  }
  absl::Status Finish() override {
    NAM_RETURN_IF_ERROR(Pass({}, ZSTD_e_end));
    return sink_->Finish();
  }

 private:
  absl::Status Pass(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    size_t left = 0;
    do {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      left = ZSTD_compressStream2(stream_, &out, &in, directive);
      NAM_CHECK(ZSTD_isError(left) == 0, "a zstd stream that was overwritten");
      NAM_RETURN_IF_ERROR(sink_->Write({output_.data(), out.pos}));
    } while (in.pos < in.size || (directive == ZSTD_e_end && left > 0));
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> sink_;
  std::vector<char> output_;
  ZSTD_CCtx* const stream_;
};

}  // namespace

std::unique_ptr<ByteSink> Deflate(std::unique_ptr<ByteSink> sink, Compression compression) {
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      return std::make_unique<GzipSink>(std::move(sink));
    case Compression::kZstd:
      return std::make_unique<ZstdSink>(std::move(sink));
  }
  return sink;
}

}  // namespace nam::csv
