import { findCertificates } from "../commands/certs.ts";
import { type Finding, ill, well } from "./finding.ts";

const HOUR_MS = 3_600_000;

/** examineCertificates says which certificates are over, or about to be although they should have been renewed. */
export function examineCertificates(stateDir: string): Finding[] {
  const found = findCertificates(stateDir);
  const late = found.filter(({ until }) => until.getTime() - Date.now() < 2 * HOUR_MS);
  if (late.length > 0) {
    return late.map(({ name, until }) => {
      const verb = until.getTime() < Date.now() ? "ended" : "ends";
      return ill("certificates", `that of ${name} ${verb} at ${until.toISOString()}`, "ganglion certs renew");
    });
  }
  const next = found
    .map(({ until }) => until.getTime())
    .reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const hours = Math.floor((next - Date.now()) / HOUR_MS);
  return [
    well("certificates", `${found.length} good, the first one ends in ${hours} h (renewed at half its life)`),
  ];
}
