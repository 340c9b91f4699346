#include "backup/manifest.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "storage/checksum.h"

namespace nam::backup {
namespace {

Manifest SomeManifest() {
  Manifest manifest;
  manifest.made = "2026-11-27T01:23:45Z";
  manifest.program = "nam 0.1.0 (commit 0123456789)";
  manifest.store = 0x00ab'cdef'0123'4567;
  manifest.fabric = "shm";
  manifest.cluster = "a cluster";
  manifest.schema = 6;
  manifest.memory_servers = {{3, 268'431'360}, {65'535, 4'096}};
  manifest.entries = {{EntryKind::kColumnar, 17, "lineorder"},
                      {EntryKind::kRecord, 0, "s.two words"},
                      {EntryKind::kView, 0, "ansicht_größe"},
                      {EntryKind::kSchema, 0, "s."}};
  manifest.files = {{kCatalogName, 4'096, 1},
                    {kRecordsName, 5, 0xffff'ffff'ffff'ffff},
                    {SealedPathOf(3, AllocationId(17)), 1 << 20, 2},
                    {SealedPathOf(65'535, AllocationId(17)), 8'192, 3}};
  return manifest;
}

/// The text with the checksum that it should have, so that nothing else is hidden by a wrong one.
std::string WithChecksum(std::string text) {
  text.resize(text.rfind("end "));
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return text + absl::StrFormat("end %016x\n", storage::Checksum(bytes));
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = EncodeManifest(SomeManifest());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return WithChecksum(text.replace(at, from.size(), to));
}

TEST(ManifestTest, ComesBackAsItWas) {
  const Manifest manifest = SomeManifest();
  const std::string text = EncodeManifest(manifest);
  const auto back = DecodeManifest(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeManifest(*back), text);
  EXPECT_EQ(back->made, manifest.made);
  EXPECT_EQ(back->program, manifest.program);
  EXPECT_EQ(back->store, manifest.store);
  EXPECT_EQ(back->cluster, "a cluster");
  ASSERT_EQ(back->memory_servers.size(), 2u);
  EXPECT_EQ(back->memory_servers[1].storage, 65'535u);
  ASSERT_EQ(back->entries.size(), 4u);
  EXPECT_EQ(back->entries[2].name, "ansicht_größe");
  EXPECT_EQ(back->CountOf(EntryKind::kRecord), 1u);
  ASSERT_NE(back->FindFile("storage-3/allocation-17.sealed"), nullptr);
  EXPECT_EQ(back->FindFile("storage-3/allocation-18.sealed"), nullptr);
  EXPECT_EQ(back->bytes(), 4'096u + 5 + (1 << 20) + 8'192);
}

TEST(ManifestTest, NoFlippedBitAndNoPieceOfItPasses) {
  const std::string text = EncodeManifest(SomeManifest());
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(DecodeManifest(flipped).ok()) << at;
    }
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(text.substr(0, at)).status())) << at;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(text + "\n").status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(text + text).status()));
}

TEST(ManifestTest, AnotherFormatIsToldFromADamagedOne) {
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeManifest(Replaced("nam backup 1", "nam backup 2")).status()));
}

TEST(ManifestTest, WhatIsNotPossibleIsRefusedThoughTheChecksumIsRight) {
  ASSERT_TRUE(DecodeManifest(Replaced("schema 6", "schema 7")).ok());
  const std::string sealed = "storage-3/allocation-17.sealed";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           // Names lead into the backup alone, and to each file once.
           {sealed, "../storage-3/allocation-17.sealed"},
           {sealed, "/etc/passwd"},
           {sealed, "storage-3/../../allocation-17.sealed"},
           {sealed, "storage-3//allocation-17.sealed"},
           {sealed, "storage-03/allocation-17.sealed"},
           {sealed, "storage-3/allocation-0.sealed"},
           {sealed, "storage-3/manifest"},
           {sealed, "storage-4/allocation-17.sealed"},  // of a server that is not listed
           {sealed, "manifest"},
           {sealed, "catalog.saved"},
           {"memory_server 3 ", "memory_server 0 "},
           {"memory_server 65535 ", "memory_server 65536 "},
           {"memory_server 65535 ", "memory_server 3 "},
           {"memory_server 3 268431360", "memory_server 3 281474976710657"},
           {"schema 6", "schema -6"},
           {"schema 6", "schema 06"},
           {"schema 6", "schema 99999999999999999999"},
           {"table columnar 17", "table wooden 17"},
           {"table columnar 17 lineorder", "table columnar 17"},
           {"made 2026-11-27T01:23:45Z by ", "made by "},
           {"cluster 00abcdef01234567 shm", "cluster 0xabcdef01234567 shm"},
           {"lineorder", std::string(2'000, 'x')},
           {"lineorder", "\\q"}}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Replaced(from, to)).status())) << from << " as " << to;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(std::string(kManifestBytesMax + 1, '\n')).status()));
}

/// Pieces that are left out, doubled or made of others: whatever is taken for a manifest is one.
TEST(ManifestTest, RandomChangesAreRefusedOrComeBackTheSame) {
  RandomStream random(17);
  const std::string text = EncodeManifest(SomeManifest());
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = text;
    for (uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
      const size_t at = random.Below(changed.size()), bytes = random.Below(changed.size() - at);
      const std::string piece = changed.substr(at, std::min<size_t>(bytes, 40));
      if (random.OneIn(2)) changed.erase(at, piece.size());
      if (random.OneIn(2)) changed.insert(random.Below(changed.size() + 1), piece);
      if (changed.empty()) changed = "\n";
    }
    if (changed.rfind("end ") != std::string::npos) changed = WithChecksum(changed);
    const auto manifest = DecodeManifest(changed);
    if (!manifest.ok()) continue;
    const auto again = DecodeManifest(EncodeManifest(*manifest));
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << changed;
    for (const SavedFile& file : manifest->files) {
      EXPECT_TRUE(file.path == kCatalogName || file.path == kRecordsName ||
                  ParseSealedPath(file.path).has_value())
          << file.path;
    }
  }
}

}  // namespace
}  // namespace nam::backup
