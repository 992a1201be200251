import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Authority, issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import type { CleanUps } from "../report/clean-ups.ts";

/** openIdentity issues a certificate of `authority` into a folder of its own below `root`, and opens it. */
export async function openIdentity(
  { authority, root, cleanUps }: { authority: Authority; root: string; cleanUps: CleanUps },
  service: string,
  instance: string,
): Promise<TlsBundle> {
  const { certPem, keyPem } = await issueCertificate(authority, { service, instance });
  const folder = join(root, instance);
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(join(folder, "ca.pem"), authority.certPem);
  writeFileSync(join(folder, "cert.pem"), certPem);
  writeFileSync(join(folder, "key.pem"), keyPem, { mode: 0o600 });
  const bundle = new TlsBundle(folder);
  cleanUps.add(() => bundle.close());
  return bundle;
}
