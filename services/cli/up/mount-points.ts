import { mkdirSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolder, meshId } from "./mesh-files.ts";

/** Where checkout and state of a mesh appear to its processes. */
export interface MountPoints {
  readonly checkout: string;
  readonly state: string;
}

/** mountPoints names the folders below /run/ganglion on which root's mesh mounts them. */
export function mountPoints(publicState: string): MountPoints {
  const base = join("/run/ganglion", meshId(publicState));
  return { checkout: join(base, "app"), state: join(base, "state") };
}

/** makeMountPoints makes them, open to everybody's passing. */
export function makeMountPoints(publicState: string): MountPoints {
  const points = mountPoints(publicState);
  const base = dirname(points.state);
  for (const folder of [dirname(base), base]) makeFolder(folder, 0o755);
  for (const folder of Object.values(points)) mkdirSync(folder, { recursive: true });
  return points;
}

/** removeMountPoints removes them after the mesh is gone; one on which something is still mounted stays. */
export function removeMountPoints(publicState: string): void {
  const points = mountPoints(publicState);
  for (const folder of [points.checkout, points.state, dirname(points.state)]) {
    try {
      // Never what is in a folder: were it still mounted, that would be the data.
      rmdirSync(folder);
    } catch {
      // Was never made, or is in use.
    }
  }
}
