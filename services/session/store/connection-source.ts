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
}

/** connectionSource gives each new connection the certificate of the moment, over verified TLS 1.3. */
export function connectionSource(address: DatabaseAddress, tls: TlsBundle): ConnectionSource {
  const { password, ...where } = address;
  return () => {
    const { ca, cert, key } = tls.material();
    return {
      ...where,
      ...(password === undefined ? {} : { password }),
      ssl: { ca, cert, key, minVersion: "TLSv1.3", rejectUnauthorized: true },
    };
  };
}
