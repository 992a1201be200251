import { realpathSync } from "node:fs";
import { EXIT } from "../terminal/exit-codes.ts";
import { askSupervisor } from "../up/control-socket.ts";
import { meshFiles, readMesh, writeMesh } from "../up/mesh-files.ts";
import { removeMountPoints } from "../up/mount-points.ts";
import { endProcess, isRunning } from "../up/process-record.ts";
import type { Command, Invocation } from "./command.ts";

const GRACE_MS = 10_000;

/** `ganglion down` stops what `up` started on a state folder, and nothing else. */
export const down: Command = {
  name: "down",
  usage: "",
  summary: "stop what up started; the data stays",
  options: {},
  arity: [0, 0],
  run: async (invocation) => {
    const stopped = await stopMesh(invocation);
    invocation.terminal.object({ stopped });
    invocation.terminal.line(stopped ? "the mesh is down" : "no mesh is up here");
    return EXIT.ok;
  },
};

/** stopMesh stops a mesh; false when there was none. */
export async function stopMesh({
  terminal,
  stateDir,
}: Pick<Invocation, "terminal" | "stateDir">): Promise<boolean> {
  const files = meshFiles(stateDir);
  const progress = terminal.progress();
  progress.set("stopping");
  try {
    const supervisor = readMesh(files).supervisor;
    const asked = await askSupervisor(files.socket, { ask: "down" }, ({ stopping }) => {
      if (typeof stopping === "string") progress.set(`stopping ${stopping}`);
    });
    if (asked) {
      // Its lock goes with its process: an `up` right after this must find it free.
      for (
        const deadline = Date.now() + GRACE_MS;
        supervisor && isRunning(supervisor) && Date.now() < deadline;
      ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      // While it still runs they are in use, and removing them would take them from under it.
      if (supervisor && !isRunning(supervisor) && process.getuid?.() === 0) {
        removeMountPoints(realpathSync(files.state));
      }
      return true;
    }
    return await stopOrphans(files);
  } finally {
    progress.clear();
  }
}

/** Where the supervisor was killed, its processes are known by pid and start time. */
async function stopOrphans(files: ReturnType<typeof meshFiles>): Promise<boolean> {
  const mesh = readMesh(files);
  const running = Object.values(mesh.processes).filter(isRunning);
  if (running.length === 0) return false;
  await Promise.all(running.map((record) => endProcess(record, GRACE_MS)));
  const { supervisor: _, ...rest } = mesh;
  writeMesh(files, { ...rest, processes: {} });
  return true;
}
