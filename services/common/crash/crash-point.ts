/** What is told when a process comes by one of its points. */
export type CrashHook = (kind: string, subject?: string, moment?: string) => void;

let hook: CrashHook | undefined;

/**
 * crashPoint names a place at which a process may die or lose its network: just before or just after something that
 * others can see. It does nothing in production; tests install a hook and kill the process there. Only literal kinds
 * and moments: the list of all points is read from the code (test/kit/crash/list-points.ts).
 */
export function crashPoint(kind: string, subject?: string, moment?: string): void {
  if (hook !== undefined) hook(kind, subject, moment);
}

/** setCrashHook is for tests alone; nothing below services/ calls it. */
export function setCrashHook(installed: CrashHook | undefined): void {
  hook = installed;
}
