import { askSupervisor, type ControlLine } from "../up/control-socket.ts";
import { meshFiles, readMesh } from "../up/mesh-files.ts";
import { isRunning } from "../up/process-record.ts";
import { examineCertificates } from "./examine-certificates.ts";
import { examineDoors } from "./examine-doors.ts";
import { examineMachine } from "./examine-machine.ts";
import { examineModel } from "./examine-model.ts";
import { examinePart } from "./examine-parts.ts";
import { type Finding, ill, well } from "./finding.ts";
import type { MeshReport } from "./mesh-report.ts";

/** examine looks at the machine and at every part of the mesh on a state folder. */
export async function examine(stateDir: string): Promise<Finding[]> {
  const files = meshFiles(stateDir);
  const report = await askMesh(files.socket);
  if (report instanceof Error)
    return [
      ...examineMachine(undefined),
      ill("supervisor", report.message, "ganglion down, then ganglion up"),
    ];
  if (!report) {
    const left = Object.entries(readMesh(files).processes).filter(([, record]) => isRunning(record));
    const detail =
      left.length > 0 ? `not running, but it left ${left.map(([name]) => name).join(", ")}` : "not running";
    return [...examineMachine(undefined), ill("supervisor", detail, "ganglion up")];
  }
  const parts = await Promise.all(report.processes.map((part) => examinePart(part, report.ports, stateDir)));
  return [
    ...examineMachine(report),
    well("supervisor", "running"),
    ...parts,
    ...examineCertificates(stateDir),
    ...(await examineDoors(stateDir, report)),
    await examineModel(stateDir, report),
  ];
}

async function askMesh(socket: string): Promise<MeshReport | Error | undefined> {
  let report: ControlLine | undefined;
  try {
    const isUp = await askSupervisor(
      socket,
      { ask: "status" },
      (line) => {
        report = line;
      },
      5000,
    );
    return isUp ? (report as unknown as MeshReport) : undefined;
  } catch (error) {
    return error as Error;
  }
}
