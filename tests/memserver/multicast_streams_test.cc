#include "memserver/multicast_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "storage/remote_ptr.h"

namespace nam::memserver {
namespace {

constexpr MemoryServerId kSelf(7);

/// Streams that wait for a member that never comes.
class MulticastStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    fabric_ = *fabric::Open({.kind = fabric::Kind::kTcp, .secret = "s"});
    pool_ = *MemoryPool::Create(*fabric_, {1u << 20, 256u << 10, /*huge_pages=*/false});
    extents_ = *pool_->Allocate(AllocationId(1), 64u << 10, MemberId(1));
    streams_ = std::make_unique<MulticastStreams>(*fabric_, *pool_);
  }
  uint64_t Block(uint64_t offset) const {
    return storage::RemotePtr<void>(kSelf, extents_[0].offset + offset).raw();
  }
  proto::StartMulticastRequest Request(uint32_t group, const std::vector<uint64_t>& blocks,
                                       uint32_t block_bytes = 2048) {
    proto::StartMulticastRequest request;
    request.set_group(group);
    request.set_members(1);
    request.set_timeout_ms(60'000);
    proto::MulticastExtent& extent = *request.add_extents();
    extent.add_run_offsets(0);
    extent.add_run_bytes(block_bytes);
    for (uint64_t block : blocks) extent.add_blocks(block);
    return request;
  }
  absl::StatusCode CodeOf(const proto::StartMulticastRequest& request) {
    return streams_->Start(kSelf, request).status().code();
  }

  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<MemoryPool> pool_;
  std::vector<Extent> extents_;
  std::unique_ptr<MulticastStreams> streams_;
};

TEST_F(MulticastStreamsTest, AStreamIsThereUntilItIsEnded) {
  const auto started = streams_->Start(kSelf, Request(1, {Block(0), Block(4096)}));
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_NE(started->board_rkey(), 0u);
  EXPECT_FALSE(started->group_address().empty());
  EXPECT_GT(started->fragment_bytes(), 1000u);
  proto::EndMulticastRequest end;
  end.set_stream(started->stream());
  const auto ended = streams_->End(end);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->blocks(), 0u);  // no member had joined
  EXPECT_EQ(streams_->End(end).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MulticastStreamsTest, OnlyBlocksOfThisServerAreSent) {
  EXPECT_EQ(CodeOf(Request(1, {storage::RemotePtr<void>(MemoryServerId(8), 4096).raw()})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Request(1, {storage::RemotePtr<void>(kSelf, 600u << 10).raw()})),  // no region yet
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Request(1, {storage::RemotePtr<void>(kSelf, uint64_t{1} << 40).raw()})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Request(1, {storage::RemotePtr<void>(kSelf, (256u << 10) - 1024).raw()})),  // leaves it
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MulticastStreamsTest, RunsMustBeOrderedAndInsideABlock) {
  proto::StartMulticastRequest request = Request(1, {Block(0)});
  request.mutable_extents(0)->add_run_offsets(1024);  // overlaps the first
  EXPECT_EQ(CodeOf(request), absl::StatusCode::kInvalidArgument);
  request.mutable_extents(0)->add_run_bytes(2048);
  EXPECT_EQ(CodeOf(request), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Request(1, {Block(0)}, 0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Request(1, {Block(0)}, (1u << 20) + 1)), absl::StatusCode::kResourceExhausted);
  request = Request(1, {Block(0)});
  request.set_members(0);
  EXPECT_EQ(CodeOf(request), absl::StatusCode::kInvalidArgument);
  request.set_members(65);
  EXPECT_EQ(CodeOf(request), absl::StatusCode::kInvalidArgument);
}

TEST_F(MulticastStreamsTest, NoMoreBytesThanThereIsMemory) {
  EXPECT_EQ(CodeOf(Request(1, std::vector<uint64_t>(1000, Block(0)))), absl::StatusCode::kResourceExhausted);
}

TEST_F(MulticastStreamsTest, StreamsAreBoundedAndAGroupHasOne) {
  for (uint32_t group = 1; group <= 16; ++group) {
    const auto started = streams_->Start(kSelf, Request(group, {Block(0)}));
    ASSERT_TRUE(started.ok()) << started.status();
  }
  EXPECT_EQ(CodeOf(Request(17, {Block(0)})), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(Request(16, {Block(0)})), absl::StatusCode::kOk);  // replaces the previous one
}

}  // namespace
}  // namespace nam::memserver
