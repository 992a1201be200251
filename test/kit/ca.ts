import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Authority,
  type CertificateRequest,
  createAuthority,
  type IssuedCertificate,
  issueCertificate,
} from "../../services/common/tls/issue-certificate.ts";
import { TlsBundle } from "../../services/common/tls/tls-bundle.ts";

/** A certificate authority for one test run, with the folders of the certificates it issued. */
export class TestCa {
  readonly authority: Authority;
  readonly root: string;
  #count = 0;
  #bundles: TlsBundle[] = [];

  private constructor(authority: Authority, root: string) {
    this.authority = authority;
    this.root = root;
  }

  /** Makes an authority, or uses that of a mesh, with a folder of its own. */
  static async create(authority?: Authority): Promise<TestCa> {
    return new TestCa(authority ?? (await createAuthority()), mkdtempSync(join(tmpdir(), "ganglion-ca-")));
  }

  /** Issues a certificate and writes it as GANGLION_TLS_DIR wants it; returns the folder (a link, as in a mesh). */
  async directory(
    service: string,
    instance = `${service}-1`,
    more: Partial<CertificateRequest> & { trust?: Authority } = {},
  ): Promise<string> {
    const link = join(this.root, `${service}.${instance}.${++this.#count}`);
    await this.renew(link, service, instance, more);
    return link;
  }

  /** Replaces the certificate in a folder made by `directory`, in one step. */
  async renew(
    link: string,
    service: string,
    instance = `${service}-1`,
    more: Partial<CertificateRequest> & { trust?: Authority } = {},
  ): Promise<IssuedCertificate> {
    const { trust, ...request } = more;
    const leaf = await issueCertificate(this.authority, { ...request, service, instance });
    const folder = `${link}.files.${++this.#count}`;
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "ca.pem"), (trust ?? this.authority).certPem);
    writeFileSync(join(folder, "cert.pem"), leaf.certPem);
    writeFileSync(join(folder, "key.pem"), leaf.keyPem, { mode: 0o600 });
    symlinkSync(folder, `${link}.next`);
    renameSync(`${link}.next`, link);
    return leaf;
  }

  /** Issues a certificate and opens it. */
  async bundle(
    service: string,
    instance?: string,
    more: Partial<CertificateRequest> & { trust?: Authority } = {},
  ): Promise<TlsBundle> {
    const bundle = new TlsBundle(await this.directory(service, instance, more));
    this.#bundles.push(bundle);
    return bundle;
  }

  /** Removes everything. */
  remove(): void {
    for (const bundle of this.#bundles) bundle.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}
