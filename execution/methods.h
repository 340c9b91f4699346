#pragma once

#include "catalog/control_plane.h"
#include "proto/compute.pb.h"

/// The methods of proto/compute.proto.
namespace nam::execution {

inline constexpr catalog::Method<proto::AttemptRequest, proto::AttemptReply> kRunAttempt{
    "/nam.proto.Compute/RunAttempt"};
inline constexpr catalog::Method<proto::ReleaseResultRequest, proto::ReleaseResultReply> kReleaseResult{
    "/nam.proto.Compute/ReleaseResult"};

}  // namespace nam::execution
