import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Authority, createAuthority, issueCertificate } from "../../common/tls/issue-certificate.ts";
import { spiffeUri } from "../../common/tls/spiffe-id.ts";
import { replaceFile } from "./mesh-files.ts";
import type { SystemUser } from "./system-user.ts";

/** Whose certificate it is. */
export interface CertificateHolder {
  /** Folder below state/tls, and the name in messages. */
  readonly name: string;
  /** The two parts of its SPIFFE id. */
  readonly service: string;
  readonly instance: string;
  /** Common name: the database role where there is one. */
  readonly cn: string;
  /** Who may read the key. */
  readonly owner?: SystemUser;
}

/** How long a certificate is good for. */
export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

/** MeshCertificates is the private authority of a mesh and the certificates it gave out. */
export class MeshCertificates {
  readonly #folder: string;
  readonly #authority: Authority;

  private constructor(folder: string, authority: Authority) {
    this.#folder = folder;
    this.#authority = authority;
  }

  /** Opens the authority in a folder and makes it on first start. */
  static async open(folder: string): Promise<MeshCertificates> {
    const [certFile, keyFile] = [join(folder, "ca.pem"), join(folder, "ca.key.pem")];
    if (!existsSync(keyFile)) {
      const made = await createAuthority();
      writeFileSync(certFile, made.certPem, { mode: 0o644 });
      // Last and at once: an authority without its key would never be completed.
      replaceFile(keyFile, made.keyPem);
    }
    const authority = { certPem: readFileSync(certFile, "utf8"), keyPem: readFileSync(keyFile, "utf8") };
    return new MeshCertificates(folder, authority);
  }

  /** PEM of the authority's certificate. */
  get caPem(): string {
    return this.#authority.certPem;
  }

  /** Folder with ca.pem, cert.pem and key.pem of a holder; a link that moves to a new folder at each renewal. */
  directory(name: string): string {
    return join(this.#folder, name);
  }

  /** Issues a certificate when the holder has none, or one that is past half its life or not what is asked for. */
  async ensure(holder: CertificateHolder): Promise<boolean> {
    const link = this.directory(holder.name);
    if (this.#isGood(link, holder)) return false;
    await this.issue(holder);
    return true;
  }

  /** Issues a new certificate, and puts key and certificate in place in one step. */
  async issue(holder: CertificateHolder): Promise<void> {
    const link = this.directory(holder.name);
    const leaf = await issueCertificate(this.#authority, {
      service: holder.service,
      instance: holder.instance,
      commonName: holder.cn,
    });
    const name = `.${holder.name}.${Date.now().toString(36)}${process.hrtime()[1].toString(36)}`;
    const folder = join(this.#folder, name);
    mkdirSync(folder, { mode: 0o700 });
    for (const [file, content] of [
      ["ca.pem", this.caPem],
      ["cert.pem", leaf.certPem],
      ["key.pem", leaf.keyPem],
    ] as const) {
      writeFileSync(join(folder, file), content, { mode: 0o600 });
      if (holder.owner) chownSync(join(folder, file), holder.owner.uid, holder.owner.gid);
    }
    if (holder.owner) chownSync(folder, holder.owner.uid, holder.owner.gid);
    chmodSync(folder, 0o700);
    const before = readLink(link);
    symlinkSync(name, `${link}.partial`);
    renameSync(`${link}.partial`, link);
    this.#removeOlder(holder.name, [name, before]);
  }

  #isGood(link: string, holder: CertificateHolder): boolean {
    try {
      const certificate = new X509Certificate(readFileSync(join(link, "cert.pem")));
      const { from, until } = validityOf(certificate);
      const half = (from.getTime() + until.getTime()) / 2;
      const names = certificate.subjectAltName ?? "";
      return (
        Date.now() < half &&
        names.split(", ").includes(`URI:${spiffeUri(holder.service, holder.instance)}`) &&
        certificate.subject === `CN=${holder.cn}` &&
        certificate.verify(new X509Certificate(this.caPem).publicKey) &&
        existsSync(join(link, "key.pem"))
      );
    } catch {
      return false;
    }
  }

  /** The folder before stays: a process may be between reading its certificate and its key. */
  #removeOlder(name: string, keep: (string | undefined)[]): void {
    for (const entry of readdirSync(this.#folder)) {
      if (entry.startsWith(`.${name}.`) && !keep.includes(entry)) {
        rmSync(join(this.#folder, entry), { recursive: true, force: true });
      }
    }
  }
}

/** validityOf reads how long a certificate is good for. */
export function validityOf(certificate: X509Certificate): Validity {
  return { from: new Date(certificate.validFrom), until: new Date(certificate.validTo) };
}

function readLink(link: string): string | undefined {
  try {
    return basename(readlinkSync(join(dirname(link), basename(link))));
  } catch {
    return undefined;
  }
}
