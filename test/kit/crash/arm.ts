// Loaded into a service by its test, before its main file: `node --import test/kit/crash/arm.ts services/<name>/main.ts`
// with a channel to the parent. It alone installs a hook; no service knows of it.
import { setCrashHook } from "../../../services/common/crash/crash-point.ts";
import type { FromArmed, ToArmed } from "./armed-messages.ts";
import { cutNetwork, watchSockets } from "./cut-network.ts";
import { pointName } from "./point-name.ts";

const CUT_MS = 150;
const service = (process.env.GANGLION_INSTANCE ?? "").replace(/-\d+$/, "");
const seen = new Set<string>();
let armed = orderOf(process.env.CRASH_ORDER);
delete process.env.CRASH_ORDER;

watchSockets();
setCrashHook((kind, subject, moment) => {
  const point = pointName(service, kind, subject, moment);
  seen.add(point);
  if (armed?.point !== point) return;
  const { action } = armed;
  armed = undefined;
  if (action === "kill") process.kill(process.pid, "SIGKILL");
  cutNetwork(CUT_MS);
  tell({ told: "hit", point });
});

process.on("message", (message: ToArmed) => {
  if (message.ask === "arm") {
    armed = message;
    tell({ told: "armed" });
  } else if (message.ask === "disarm") {
    armed = undefined;
    tell({ told: "disarmed" });
  } else {
    tell({ told: "seen", points: [...seen] });
    seen.clear();
  }
});
// Its parent is gone: nobody will end it.
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
// Waiting for orders must not keep a service from ending.
process.channel?.unref();

function tell(message: FromArmed): void {
  process.send?.(message);
}

function orderOf(text: string | undefined): Extract<ToArmed, { ask: "arm" }> | undefined {
  return text === undefined ? undefined : JSON.parse(text);
}
