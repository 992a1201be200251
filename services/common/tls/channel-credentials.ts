import { ChannelCredentials } from "@grpc/grpc-js";
import { expectService } from "./check-server.ts";
import type { TlsBundle } from "./tls-bundle.ts";

type CreateConnector = ChannelCredentials["_createSecureConnector"];

/**
 * Client credentials that dial with the bundle's newest certificate and accept one service only.
 * Connections made before a renewal go on until the server's connection age ends them.
 */
class BundleChannelCredentials extends ChannelCredentials {
  readonly #bundle: TlsBundle;
  readonly #checkServerIdentity: ReturnType<typeof expectService>;

  constructor(bundle: TlsBundle, expectedService: string) {
    super();
    this.#bundle = bundle;
    this.#checkServerIdentity = expectService(expectedService);
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(...args: Parameters<CreateConnector>): ReturnType<CreateConnector> {
    const make = () =>
      ChannelCredentials.createFromSecureContext(this.#bundle.secureContext(), {
        checkServerIdentity: this.#checkServerIdentity,
      })._createSecureConnector(...args);
    const first = make();
    return {
      connect: (socket) => make().connect(socket),
      waitForReady: () => first.waitForReady(),
      getCallCredentials: () => first.getCallCredentials(),
      destroy: () => first.destroy(),
    };
  }
}

/** Credentials for calling one service of the mesh. */
export function createChannelCredentials(bundle: TlsBundle, expectedService: string): ChannelCredentials {
  return new BundleChannelCredentials(bundle, expectedService);
}
