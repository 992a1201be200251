import { createHash } from "node:crypto";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { type Caller, type CertificateCaller, type Credentials, unauthenticated } from "./caller.ts";

/** Asks the session service whose key a hash belongs to; throws UNAUTHENTICATED for nobody's. */
export type LookUpKey = (keySha256: Buffer) => Promise<{ id: string; workspaceId: string }>;

/** A revoked key works at most this much longer. */
const CACHE_MS = 1000;
const MAX_ENTRIES = 10_000;
const MAX_KEY_CHARS = 512;
/** Client certificates name their workspace: client/<workspace>.<name>. */
const CLIENT_FORM = /^(wrkspc_[A-Za-z0-9_-]+)\.[A-Za-z0-9._-]+$/;

/** Authenticator finds out who calls: an API key where one is shown, else the certificate of the connection. */
export class Authenticator {
  readonly #lookUp: LookUpKey;
  readonly #known = new Map<string, { until: number; caller: Promise<Caller> }>();

  constructor(lookUp: LookUpKey) {
    this.#lookUp = lookUp;
  }

  /** Resolves the caller or throws UNAUTHENTICATED. A key that is shown must be good, whatever else is shown. */
  async authenticate(credentials: Credentials): Promise<Caller> {
    const key = keyOf(credentials);
    if (key !== undefined) return this.#byKey(key);
    if (credentials.certificate) return byCertificate(credentials.certificate);
    throw unauthenticated();
  }

  #byKey(key: string): Promise<Caller> {
    const digest = createHash("sha256").update(key).digest();
    const name = digest.toString("base64");
    const now = Date.now();
    const known = this.#known.get(name);
    if (known && known.until > now) return known.caller;
    const caller = this.#lookUp(digest).then(({ id, workspaceId }): Caller => {
      // An answer without these would open everything or nothing; neither is meant.
      if (!id || !workspaceId) throw unauthenticated();
      return { role: "client", workspaceId, subject: id };
    });
    // Only what was found is kept: a key that is registered now works now.
    caller.catch(() => this.#known.delete(name));
    if (this.#known.size >= MAX_ENTRIES) this.#known.clear();
    this.#known.set(name, { until: now + CACHE_MS, caller });
    return caller;
  }
}

function keyOf({ authorization, apiKey }: Credentials): string | undefined {
  if (authorization === undefined && apiKey === undefined) return undefined;
  const bearer = authorization === undefined ? undefined : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (authorization !== undefined && bearer === undefined)
    throw unauthenticated("authorization must be: Bearer <API key>");
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) {
    throw unauthenticated("two different API keys were given");
  }
  const key = bearer ?? apiKey;
  if (!key || key.length > MAX_KEY_CHARS) throw unauthenticated();
  return key;
}

function byCertificate(certificate: CertificateCaller): Caller {
  if (certificate.service === "operator") {
    return { role: "operator", workspaceId: null, subject: certificate.uri };
  }
  const workspaceId =
    certificate.service === "client" ? CLIENT_FORM.exec(certificate.instance)?.[1] : undefined;
  if (workspaceId) return { role: "client", workspaceId, subject: certificate.uri };
  throw new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "ROLE_NOT_ALLOWED",
    message: `a ${certificate.service} certificate may call nothing here`,
  });
}
