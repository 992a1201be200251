import type { User } from "../parts/user.ts";
import type { World } from "../parts/world.ts";
import { checkCalls } from "./check-calls.ts";
import { checkEnd } from "./check-end.ts";
import { checkLog } from "./check-log.ts";
import { checkRequests } from "./check-requests.ts";

/** Everything that must hold after a run. */
export function checkRun(world: World): string[] {
  const { database, network, mind, observers, users, effects, plan } = world;
  const isCalm = plan.faults === 0 && plan.weather.loss === 0 && plan.user.interrupts === 0;
  return [
    ...network.faults,
    ...mind.faults,
    ...checkLog(database),
    ...observers.flatMap((observer, i) => [
      ...checkCalls(observer.events, effects, isCalm),
      ...checkRequests(observer.events),
      ...checkEnd(observer, users[i] as User, mind),
    ]),
  ];
}
