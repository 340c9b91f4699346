#include "storage/allocation_keys.h"

#include <gtest/gtest.h>

namespace nam::storage {
namespace {

constexpr fabric::RemoteKey kOne{11}, kTwo{22}, kThree{33};

RemotePtr<void> At(uint16_t server, uint64_t offset) {
  return {MemoryServerId(server), offset};
}

class AllocationKeysTest : public testing::Test {
 protected:
  AllocationKeysTest() {
    keys_.Add(At(2, 8192), 4096, kThree);
    keys_.Add(At(1, 12288), 8192, kTwo);  // right behind the next one
    keys_.Add(At(1, 4096), 8192, kOne);
  }
  void ExpectKey(RemotePtr<void> pointer, uint64_t bytes, fabric::RemoteKey rkey, uint64_t offset) {
    const auto address = keys_.Resolve(pointer, bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->rkey, rkey);
    EXPECT_EQ(address->offset, offset);
  }
  void ExpectNone(RemotePtr<void> pointer, uint64_t bytes) {
    EXPECT_EQ(keys_.Resolve(pointer, bytes).status().code(), absl::StatusCode::kOutOfRange);
  }
  AllocationKeys keys_;
};

TEST_F(AllocationKeysTest, OffsetsCountFromTheExtent) {
  ExpectKey(At(1, 4096), 8192, kOne, 0);
  ExpectKey(At(1, 12280), 8, kOne, 8184);
  ExpectKey(At(1, 12288), 1, kTwo, 0);
  ExpectKey(At(1, 20479), 1, kTwo, 8191);
  ExpectKey(At(2, 9000), 100, kThree, 808);
}

TEST_F(AllocationKeysTest, WhatLiesInNoExtentIsRefused) {
  ExpectNone(At(1, 0), 8);
  ExpectNone(At(1, 4088), 8);
  ExpectNone(At(1, 20480), 8);
  ExpectNone(At(1, 8192), 8192);  // over two extents
  ExpectNone(At(2, 4096), 8);
  ExpectNone(At(2, 8192), 4097);
  ExpectNone(At(2, 8192), UINT64_MAX);
  ExpectNone(At(3, 8192), 8);
  ExpectNone(RemotePtr<void>(), 8);
}

TEST_F(AllocationKeysTest, AnExtentIsAddedOnce) {
  EXPECT_DEATH(keys_.Add(At(1, 4096), 1, kOne), "handed out twice");
}

}  // namespace
}  // namespace nam::storage
