import type { CredentialNetworking, InjectionLocation } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { asObject, invalid, refuseUnknown } from "./refuse.ts";

/** networkingFromJson reads to which hosts a secret may go. */
export function networkingFromJson(value: unknown, name: string): CredentialNetworking {
  const json = asObject(value, name);
  if (json.type === "unrestricted") {
    refuseUnknown(json, ["type"], `${name}.`);
    return { scope: { $case: "unrestricted", value: {} } };
  }
  if (json.type !== "limited") throw invalid(`${name}.type`, "must be unrestricted or limited");
  refuseUnknown(json, ["type", "allowed_hosts"], `${name}.`);
  const hosts = json.allowed_hosts;
  if (!Array.isArray(hosts) || !hosts.every((host) => typeof host === "string")) {
    throw invalid(`${name}.allowed_hosts`, "must be a list of hosts");
  }
  return { scope: { $case: "limited", value: { allowedHosts: hosts } } };
}

/** placesFromJson reads where in a request a secret may be put; only absence leaves it out, null is refused. */
export function placesFromJson(value: unknown, name: string): InjectionLocation | undefined {
  if (value === undefined) return undefined;
  const json = asObject(value, name);
  refuseUnknown(json, ["header", "body"], `${name}.`);
  for (const place of ["header", "body"]) {
    const isFit = json[place] === undefined || typeof json[place] === "boolean";
    if (!isFit) throw invalid(`${name}.${place}`, "must be true or false");
  }
  return { header: json.header as boolean | undefined, body: json.body as boolean | undefined };
}
