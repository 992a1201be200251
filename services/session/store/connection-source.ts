import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { expectService } from "../../common/tls/check-server.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import type { ConnectionSource } from "./database.ts";

/** Where the database is. */
export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Only where the server wants one; the embedded one takes certificates. */
  readonly password?: string | undefined;
  /** Authority of a server that is not the mesh's own. */
  readonly caPem?: string | undefined;
}

/**
 * connectionSource gives each new connection the certificate of the moment, over verified TLS 1.3. A server with an
 * authority of its own knows nothing of the mesh's certificates: it gets user and password only.
 */
export function connectionSource(address: DatabaseAddress, tls: TlsBundle): ConnectionSource {
  const { password, caPem, ...where } = address;
  return () => {
    const { ca, cert, key } = tls.material();
    // Any service's certificate is good for this machine's name: the mesh's own database must show that it is one.
    const trust =
      caPem === undefined
        ? { ca, cert, key, checkServerIdentity: expectService("postgres") }
        : {
            ca: caPem,
            checkServerIdentity: (_host: string, seen: PeerCertificate) =>
              checkServerIdentity(where.host, seen),
          };
    return {
      ...where,
      ...(password === undefined ? {} : { password }),
      ssl: { ...trust, minVersion: "TLSv1.3", rejectUnauthorized: true },
    };
  };
}
