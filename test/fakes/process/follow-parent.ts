const POLL_MS = 200;

/**
 * followParent calls `onOrphaned` when the process that started this one is gone: a fake must not outlive the test run
 * or the mesh that started it, even when those were killed.
 */
export function followParent(onOrphaned: () => void): void {
  const parent = process.ppid;
  const poll = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(poll);
    onOrphaned();
  }, POLL_MS);
  poll.unref();
}
