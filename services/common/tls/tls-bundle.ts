import { createPrivateKey, X509Certificate } from "node:crypto";
import { EventEmitter } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { parseSpiffeUri, type SpiffeId, spiffeIdOf } from "./spiffe-id.ts";

const FILES = ["ca.pem", "cert.pem", "key.pem"] as const;
// SSL_OP_NO_TICKET: a resumed session would skip the check of the peer's certificate.
const SSL_OP_NO_TICKET = 0x4000;

/** Certificate, key and authority as PEM. */
export interface TlsMaterial {
  ca: Buffer;
  cert: Buffer;
  key: Buffer;
}

/** Events of a bundle: `change` after new files were taken, `rejected` when they were not usable. */
interface BundleEvents {
  change: [];
  rejected: [Error];
}

/**
 * The certificate of this process, read from a folder with ca.pem, cert.pem and key.pem and read
 * again when the files change. Servers and clients made from it use new files for new connections
 * and leave old connections alone. Files that do not fit together are not taken.
 */
export class TlsBundle extends EventEmitter<BundleEvents> {
  readonly directory: string;
  #material: TlsMaterial;
  #context: SecureContext;
  #identity: SpiffeId;
  #seen: string;
  #timer: NodeJS.Timeout | undefined;

  /** Reads the folder; throws when it holds no usable bundle. */
  constructor(directory: string, options: { pollMs?: number } = {}) {
    super();
    // One listener per server and client.
    this.setMaxListeners(0);
    this.directory = directory;
    this.#seen = this.#fingerprint();
    this.#material = readMaterial(directory);
    this.#identity = checkMaterial(this.#material);
    this.#context = createSecureContext(contextOptions(this.#material));
    // Polled, because a watcher on a folder that is swapped by rename goes blind.
    this.#timer = setInterval(() => this.reload(), options.pollMs ?? 2000);
    this.#timer.unref();
  }

  /** Options for a server's secure context: TLS 1.3 only. */
  contextOptions(): SecureContextOptions {
    return contextOptions(this.#material);
  }

  /** Secure context for outgoing connections. */
  secureContext(): SecureContext {
    return this.#context;
  }

  /** PEM of certificate, key and authority, for libraries that take those (pg, undici). */
  material(): TlsMaterial {
    return this.#material;
  }

  /** Who this process is. */
  identity(): SpiffeId {
    return this.#identity;
  }

  /** Looks at the files now; true when new ones were taken. */
  reload(): boolean {
    try {
      const seen = this.#fingerprint();
      if (seen === this.#seen) return false;
      const material = readMaterial(this.directory);
      const identity = checkMaterial(material);
      const context = createSecureContext(contextOptions(material));
      this.#seen = seen;
      this.#material = material;
      this.#identity = identity;
      this.#context = context;
    } catch (error) {
      // Half-written or mismatched: the next look may find them complete.
      this.emit("rejected", error as Error);
      return false;
    }
    this.emit("change");
    return true;
  }

  /** Stops watching. */
  close(): void {
    clearInterval(this.#timer);
    this.removeAllListeners();
  }

  #fingerprint(): string {
    return FILES.map((name) => {
      const { ino, size, mtimeMs } = statSync(join(this.directory, name));
      return `${ino}:${size}:${mtimeMs}`;
    }).join(" ");
  }
}

function readMaterial(directory: string): TlsMaterial {
  const [ca, cert, key] = FILES.map((name) => readFileSync(join(directory, name)));
  return { ca: ca as Buffer, cert: cert as Buffer, key: key as Buffer };
}

function checkMaterial(material: TlsMaterial): SpiffeId {
  const certificate = new X509Certificate(material.cert);
  if (!certificate.checkPrivateKey(createPrivateKey(material.key))) {
    throw new Error("cert.pem and key.pem do not belong together");
  }
  const id = spiffeIdOf({ subjectaltname: certificate.subjectAltName ?? "" });
  if (!id || !parseSpiffeUri(id.uri)) throw new Error("cert.pem carries no SPIFFE id of the mesh");
  return id;
}

function contextOptions(material: TlsMaterial): SecureContextOptions {
  return { ...material, minVersion: "TLSv1.3", maxVersion: "TLSv1.3", secureOptions: SSL_OP_NO_TICKET };
}
