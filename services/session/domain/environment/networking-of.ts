import type { Networking, NetworkingType } from "../../../gen/ganglion/mcpproxy/v1/binding_service.ts";

// The numbers behind the generated names, of which the domain takes types alone; a test compares them.
const TYPES: ReadonlyMap<unknown, NetworkingType> = new Map([
  ["unrestricted", 1],
  ["limited", 2],
]);

/**
 * networkingOf reads the rule on hosts from an environment's configuration. What it does not know allows nothing:
 * undefined = hands reach no host.
 */
export function networkingOf(environmentJson: Uint8Array): Networking | undefined {
  const { networking } = JSON.parse(Buffer.from(environmentJson).toString("utf8")) as Config;
  const type = TYPES.get(networking?.type);
  if (!networking || type === undefined) return undefined;
  const isLimited = networking.type === "limited";
  return {
    type,
    allowedHosts: isLimited ? (networking.allowed_hosts ?? []).map((host) => host.toLowerCase()) : [],
    allowMcpServers: isLimited && networking.allow_mcp_servers === true,
    allowPackageManagers: isLimited && networking.allow_package_managers === true,
  };
}

/** What is read of the configuration, which was resolved when the environment was made. */
interface Config {
  networking?: {
    type?: string;
    allowed_hosts?: string[];
    allow_mcp_servers?: boolean;
    allow_package_managers?: boolean;
  };
}
