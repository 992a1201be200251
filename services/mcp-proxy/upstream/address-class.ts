import { BlockList, isIP } from "node:net";
import type { AddressClass } from "../domain/destination-policy.ts";

type Range = readonly [network: string, prefix: number];

const V4: readonly [AddressClass, readonly Range[]][] = [
  ["loopback", [["127.0.0.0", 8]]],
  // Instance metadata of the clouds lives here.
  ["link-local", [["169.254.0.0", 16]]],
  [
    "private",
    [
      ["10.0.0.0", 8],
      ["172.16.0.0", 12],
      ["192.168.0.0", 16],
      ["100.64.0.0", 10],
    ],
  ],
  [
    "forbidden",
    [
      ["0.0.0.0", 8],
      ["192.0.0.0", 24],
      ["192.0.2.0", 24],
      ["198.18.0.0", 15],
      ["198.51.100.0", 24],
      ["203.0.113.0", 24],
      ["224.0.0.0", 3],
    ],
  ],
];
const V6: readonly [AddressClass, readonly Range[]][] = [
  ["loopback", [["::1", 128]]],
  ["link-local", [["fe80::", 10]]],
  // The metadata address of one cloud is inside its private range.
  ["forbidden", [["fd00:ec2::254", 128]]],
  ["private", [["fc00::", 7]]],
];
// The only IPv6 range from which public addresses are given out; all else is special or not assigned.
const V6_GLOBAL: Range = ["2000::", 3];
// Ranges that carry an IPv4 address inside: they must not be a way round the list above.
const V6_TUNNELS: readonly Range[] = [
  ["2001::", 32],
  ["2002::", 16],
  ["2001:db8::", 32],
];

const V4_LISTS = V4.map(([kind, ranges]) => [kind, listOf(ranges, "ipv4")] as const);
const V6_LISTS = V6.map(([kind, ranges]) => [kind, listOf(ranges, "ipv6")] as const);
const GLOBAL = listOf([V6_GLOBAL], "ipv6");
const TUNNELS = listOf(V6_TUNNELS, "ipv6");

/** Says what kind of network a literal address belongs to; anything unknown is forbidden. */
export function classifyAddress(address: string): AddressClass {
  const family = isIP(address);
  if (family === 4) return V4_LISTS.find(([, list]) => list.check(address, "ipv4"))?.[0] ?? "public";
  if (family !== 6) return "forbidden";
  const mapped = mappedV4(address);
  if (mapped !== undefined) return classifyAddress(mapped);
  const kind = V6_LISTS.find(([, list]) => list.check(address, "ipv6"))?.[0];
  if (kind) return kind;
  return GLOBAL.check(address, "ipv6") && !TUNNELS.check(address, "ipv6") ? "public" : "forbidden";
}

/** The IPv4 address in ::ffff:a.b.c.d, in either spelling. */
function mappedV4(address: string): string | undefined {
  const canonical = new URL(`http://[${address.split("%")[0]}]/`).hostname.slice(1, -1);
  const match = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!match) return undefined;
  const value = (Number.parseInt(match[1] ?? "", 16) << 16) | Number.parseInt(match[2] ?? "", 16);
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}

function listOf(ranges: readonly Range[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, family);
  return list;
}
