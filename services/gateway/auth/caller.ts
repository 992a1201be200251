import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** A caller whom the gateway knows, as the services are told. */
export interface Caller {
  readonly role: "operator" | "client";
  /** Workspace of a client; null for operators. */
  readonly workspaceId: string | null;
  /** Id of the API key, or SPIFFE id of the certificate. */
  readonly subject: string;
}

/** What a caller shows. */
export interface Credentials {
  /** Value of `authorization`, or of `x-api-key` where that is allowed. */
  readonly authorization: string | undefined;
  readonly apiKey?: string | undefined;
  /** Verified certificate of the connection, when there was one. */
  readonly certificate: CertificateCaller | undefined;
}

/** What a verified certificate says of its bearer. */
export interface CertificateCaller {
  readonly service: string;
  readonly instance: string;
  readonly uri: string;
}

/** unauthenticated is the one answer to every credential that is missing or wrong: it tells nothing about which. */
export function unauthenticated(
  message = "give an API key as bearer token, or a client certificate",
): GanglionError {
  return new GanglionError({ code: "UNAUTHENTICATED", reason: "API_KEY_INVALID", message });
}
