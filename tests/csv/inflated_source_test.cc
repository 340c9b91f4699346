#include "csv/inflated_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <random>
#include <string>

#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string ManyLines(size_t bytes) {
  std::mt19937_64 random(7);
  std::string text;
  while (text.size() < bytes) text += std::to_string(random() % 100'000) + ",abc\n";
  return text;
}

class InflatedSourceTest : public ::testing::TestWithParam<Compression> {
 protected:
  static std::string Pack(const std::string& text) {
    return GetParam() == Compression::kGzip ? Gzip(text) : Zstd(text);
  }
  /// All of the text, in pieces of `step` bytes.
  absl::StatusOr<std::string> Unpack(const std::string& packed, size_t step = 10'000) {
    const std::string path = folder_.File("packed");
    std::ofstream(path, std::ios::binary) << packed;
    const auto source = Inflate(*OpenFile(path), GetParam());
    std::string all, piece(step, '\0');
    while (true) {
      const absl::StatusOr<size_t> n = source->Read(piece.data(), piece.size());
      if (!n.ok()) return n.status();
      if (*n == 0) return all;
      all.append(piece, 0, *n);
    }
  }

  const TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Formats, InflatedSourceTest,
                         ::testing::Values(Compression::kGzip, Compression::kZstd),
                         [](const auto& info) { return info.param == Compression::kGzip ? "gzip" : "zstd"; });

TEST_P(InflatedSourceTest, GivesWhatWasPacked) {
  const std::string text = ManyLines(3'000'000);
  for (const size_t step : {size_t{777}, size_t{1} << 20}) {
    const auto unpacked = Unpack(Pack(text), step);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    EXPECT_TRUE(*unpacked == text);
  }
  EXPECT_EQ(*Unpack(Pack("")), "");
}

/// `cat a.gz b.gz` makes such files.
TEST_P(InflatedSourceTest, FilesBehindOneAnotherAreOne) {
  EXPECT_EQ(*Unpack(Pack("one\n") + Pack("") + Pack("two\n")), "one\ntwo\n");
}

TEST_P(InflatedSourceTest, WhatIsCutOffOrDamagedIsRefused) {
  const std::string text = ManyLines(300'000), packed = Pack(text);
  for (const size_t left : {size_t{0}, size_t{5}, packed.size() / 2, packed.size() - 1}) {
    const auto cut = Unpack(packed.substr(0, left));
    ASSERT_FALSE(cut.ok()) << left;
    EXPECT_EQ(SqlErrorOf(cut.status())->sqlstate, "22P04");
  }
  EXPECT_FALSE(Unpack("id,name\n1,a\n").ok()) << "a plain file with such a name";
  EXPECT_FALSE(Unpack(packed + "rubbish behind it").ok());
  std::string damaged = packed;
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 20; ++i)
    damaged[i] = static_cast<char>(~damaged[i]);
  const auto read = Unpack(damaged);
  // zstd's frames have a checksum only if they were asked for one.
  EXPECT_TRUE(GetParam() == Compression::kZstd || !read.ok());
  EXPECT_EQ(read.ok() ? read->size() : text.size(), text.size());
}

TEST(Compression, IsSaidByTheName) {
  EXPECT_EQ(CompressionOf("a/b.csv.gz"), Compression::kGzip);
  EXPECT_EQ(CompressionOf("b.CSV.ZST"), Compression::kZstd);
  EXPECT_EQ(CompressionOf("gz"), Compression::kNone);
  EXPECT_EQ(WithoutCompression("a.tbl.gz"), "a.tbl");
  EXPECT_EQ(WithoutCompression("a.tbl"), "a.tbl");
}

}  // namespace
}  // namespace nam::csv
