import { ServerCredentials } from "@grpc/grpc-js";
import type { TlsBundle } from "./tls-bundle.ts";

/** Whether a peer must show a certificate. */
export type ClientCertificates = "required" | "verify-if-given";

/**
 * gRPC server credentials: TLS 1.3 only, certificates of the mesh's authority, reloaded when the
 * bundle changes. grpc-js offers reload and optional certificates under `experimental` only.
 */
class BundleServerCredentials extends ServerCredentials {
  readonly #bundle: TlsBundle;
  readonly #onChange: () => void;

  constructor(bundle: TlsBundle, certificates: ClientCertificates) {
    super(
      { requestCert: true, rejectUnauthorized: certificates === "required", handshakeTimeout: 10_000 },
      bundle.contextOptions(),
    );
    this.#bundle = bundle;
    this.#onChange = () => this.updateSecureContextOptions(bundle.contextOptions());
    bundle.on("change", this.#onChange);
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }

  /** Stops following the bundle. */
  dispose(): void {
    this.#bundle.off("change", this.#onChange);
  }
}

/** Credentials for a mesh server. */
export function createServerCredentials(
  bundle: TlsBundle,
  certificates: ClientCertificates = "required",
): BundleServerCredentials {
  return new BundleServerCredentials(bundle, certificates);
}
