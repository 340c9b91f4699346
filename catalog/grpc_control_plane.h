#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/certificates.h"
#include "catalog/control_plane.h"

/// Declared instead of included, because many files start servers but few call gRPC.
namespace grpc {
class Status;
}

namespace nam::catalog {

/// Calls by gRPC over TLS in both directions (docs/design/control-plane-security.md), with certificates made
/// from the secret. A failed call carries its complete status in grpc-status-details-bin (google.rpc.Status).
/// A server runs at most 64 calls at once and answers others with RESOURCE_EXHAUSTED. Deadlines use
/// RealClock().
ControlPlane& GrpcControlPlane();

inline constexpr unsigned kCertificateRefreshS = 60;

/// Uses an operator's certificates, which are reread every `refresh_s`. Errors as in ReadIdentity; later
/// errors are logged, and the previous certificates stay in use.
absl::StatusOr<std::unique_ptr<ControlPlane>> MakeGrpcControlPlane(const TlsFiles& files,
                                                                   unsigned refresh_s = kCertificateRefreshS);

/// Keeps code and message; payloads travel in the details. Statuses of nam's services always have details,
/// which distinguishes them from gRPC's own.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace nam::catalog
