#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/certificates.h"
#include "catalog/control_plane.h"

/// Not included: few files call gRPC, many start its servers.
namespace grpc {
class Status;
}

namespace nam::catalog {

/// Calls by gRPC over TLS in both directions (docs/design/control-plane-security.md), with certificates made
/// from the secret. A failed call carries its status whole in grpc-status-details-bin (google.rpc.Status). At
/// most 64 calls run at once on a server; more are answered RESOURCE_EXHAUSTED. Deadlines are RealClock()'s.
ControlPlane& GrpcControlPlane();

inline constexpr unsigned kCertificateRefreshS = 60;

/// The same with an operator's certificates, which are read again every `refresh_s`. Errors as
/// ReadIdentity's; later ones go to the log, and the former certificates stay in use.
absl::StatusOr<std::unique_ptr<ControlPlane>> MakeGrpcControlPlane(const TlsFiles& files,
                                                                   unsigned refresh_s = kCertificateRefreshS);

/// Code and message as they are; payloads travel in the details. Statuses of our own services always
/// have details, which tells them from what gRPC itself reports.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace nam::catalog
