/**
 * advertisedAddress is where other replicas reach this one: what was configured, else where it listens, unless that is
 * every address of the machine, which is no place to dial.
 */
export function advertisedAddress(configured: string | undefined, listening: string): string | undefined {
  if (configured !== undefined) return configured;
  return /^(0\.0\.0\.0|\[::\]):/.test(listening) ? undefined : listening;
}
