#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "catalog/control_plane.h"

namespace nam::catalog {

/// Calls by gRPC over TCP. A call carries a token derived from the cluster's secret, a failed one its status
/// whole in grpc-status-details-bin (google.rpc.Status). At most 64 calls run at once on a server; more are
/// answered RESOURCE_EXHAUSTED. Has no state; deadlines are RealClock()'s.
ControlPlane& GrpcControlPlane();

/// Code and message as they are; payloads travel in the details. Statuses of our own services always
/// have details, which tells them from what gRPC itself reports.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace nam::catalog
