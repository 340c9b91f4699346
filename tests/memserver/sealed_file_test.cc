#include "memserver/sealed_file.h"

#include <gtest/gtest.h>

#include <string>

namespace nam::memserver {
namespace {

SealedHeader SomeHeader() {
  SealedHeader header;
  header.identity = {.store = 0x1234'5678'9abc'def0, .cluster = "a cluster", .storage = 6};
  header.allocation = AllocationId(17);
  header.extents = {{.offset = 4'096, .bytes = kPieceBytes + 4'096}, {.offset = 5 << 20, .bytes = 8'192}};
  header.checksums = {1, 2, 3};
  return header;
}

TEST(SealedFile, AHeaderComesBackAsItWas) {
  const SealedHeader header = SomeHeader();
  const std::string bytes = EncodeSealedHeader(header);
  EXPECT_EQ(bytes.size(), SealedHeaderBytes(header));
  EXPECT_EQ(bytes.size() % kExtentAlignment, 0u);
  EXPECT_EQ(*SealedHeaderBytesOf(bytes), bytes.size());
  const auto back = DecodeSealedHeader(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->identity, header.identity);
  EXPECT_EQ(back->allocation, header.allocation);
  EXPECT_EQ(back->extents, header.extents);
  EXPECT_EQ(back->checksums, header.checksums);
  EXPECT_EQ(back->data_bytes(), kPieceBytes + 4'096 + 8'192);
}

TEST(SealedFile, PiecesCoverTheExtentsInOrder) {
  const std::vector<SealedPiece> pieces = PiecesOf(SomeHeader().extents, 4'096);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].offset, 4'096u);
  EXPECT_EQ(pieces[0].bytes, kPieceBytes);
  EXPECT_EQ(pieces[0].file_offset, 4'096u);
  EXPECT_EQ(pieces[1].offset, 4'096 + kPieceBytes);
  EXPECT_EQ(pieces[1].bytes, 4'096u);
  EXPECT_EQ(pieces[1].file_offset, 4'096 + kPieceBytes);
  EXPECT_EQ(pieces[2].offset, uint64_t{5} << 20);
  EXPECT_EQ(pieces[2].bytes, 8'192u);
  EXPECT_EQ(pieces[2].file_offset, 8'192 + kPieceBytes);
}

TEST(SealedFile, NoFlippedBitPasses) {
  const std::string bytes = EncodeSealedHeader(SomeHeader());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeSealedHeader(flipped).status())) << at;
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, size_t{4'095}})
    EXPECT_TRUE(absl::IsDataLoss(DecodeSealedHeader(bytes.substr(0, size)).status())) << size;
}

TEST(SealedFile, ExtentsThatOverlapAreRefusedThoughTheChecksumIsRight) {
  SealedHeader header = SomeHeader();
  header.extents[1].offset = 8'192;
  EXPECT_TRUE(absl::IsDataLoss(DecodeSealedHeader(EncodeSealedHeader(header)).status()));
  header.extents[1].offset = 0;
  EXPECT_TRUE(absl::IsDataLoss(DecodeSealedHeader(EncodeSealedHeader(header)).status()));
}

TEST(SealedFile, OnlyItsOwnNamesAreAllocations) {
  EXPECT_EQ(SealedFileName(AllocationId(17)), "allocation-17.sealed");
  EXPECT_EQ(AllocationOfFileName("allocation-17.sealed"), AllocationId(17));
  for (const char* other :
       {"allocation-17.new", "allocation-.sealed", "allocation-017.sealed", "allocation-+1.sealed",
        "allocation-17.sealed~", "lock", "allocation-99999999999999999999.sealed"}) {
    EXPECT_EQ(AllocationOfFileName(other), AllocationId()) << other;
  }
}

}  // namespace
}  // namespace nam::memserver
