import { assemble, type Step } from "./bpf.ts";

/** System calls of x86-64 that answer EPERM in a hand (case A093): name → number. */
export const DENIED_SYSCALLS: Readonly<Record<string, number>> = {
  ptrace: 101,
  process_vm_readv: 310,
  process_vm_writev: 311,
  process_madvise: 440,
  pidfd_getfd: 438,
  kcmp: 312,
  mount: 165,
  umount2: 166,
  pivot_root: 155,
  chroot: 161,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  mount_setattr: 442,
  open_tree_attr: 467,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  unshare: 272,
  setns: 308,
  bpf: 321,
  perf_event_open: 298,
  userfaultfd: 323,
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  kexec_load: 246,
  kexec_file_load: 320,
  init_module: 175,
  finit_module: 313,
  delete_module: 176,
  reboot: 169,
  swapon: 167,
  swapoff: 168,
  acct: 163,
  quotactl: 179,
  quotactl_fd: 443,
  syslog: 103,
  fanotify_init: 300,
  lookup_dcookie: 212,
  settimeofday: 164,
  clock_settime: 227,
  clock_adjtime: 305,
  adjtimex: 159,
  sethostname: 170,
  setdomainname: 171,
  iopl: 172,
  ioperm: 173,
  modify_ldt: 154,
  uselib: 134,
  vhangup: 153,
  nfsservctl: 180,
  move_pages: 279,
  migrate_pages: 256,
};

const AUDIT_ARCH_X86_64 = 0xc000003e;
const X32_BIT = 0x40000000;
const CLONE = 56;
const CLONE3 = 435;
const IOCTL = 16;
const SOCKET = 41;
// NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME's bit belongs to the exit signal in
// clone's own flags and cannot be asked for there.
const CLONE_NEW_FLAGS = 0x7e020000;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
// Unix, IPv4, IPv6 and netlink live in the hand's own network namespace. AF_VSOCK does not: it would reach the
// hypervisor. The rest is kernel surface that no tool needs.
const ALLOWED_FAMILIES = [1, 2, 10, 16];

const OFFSET_NUMBER = 0;
const OFFSET_ARCH = 4;
const OFFSET_ARGUMENT_0 = 16;
const OFFSET_ARGUMENT_1 = 24;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;
const failWith = (errno: number) => 0x00050000 | errno;

/**
 * buildSeccompFilter makes the system call filter of every hand. Clone3 answers ENOSYS, so that libraries fall back
 * to clone, whose flags a filter can see; the x32 calls answer ENOSYS; another architecture's calls kill.
 */
export function buildSeccompFilter(arch: string = process.arch): Buffer {
  if (arch !== "x64") throw new Error(`no system call filter for ${arch}`);
  const steps: Step[] = [
    { load: OFFSET_ARCH },
    { test: "equal", value: AUDIT_ARCH_X86_64, goTo: "native" },
    { result: KILL_PROCESS },
    { label: "native" },
    { load: OFFSET_NUMBER },
    { test: "atLeast", value: X32_BIT, goTo: "missing" },
    { test: "equal", value: CLONE3, goTo: "missing" },
    { test: "equal", value: CLONE, goTo: "clone" },
    { test: "equal", value: IOCTL, goTo: "ioctl" },
    { test: "equal", value: SOCKET, goTo: "socket" },
    ...Object.values(DENIED_SYSCALLS).map((value): Step => ({ test: "equal", value, goTo: "denied" })),
    { result: ALLOW },
    { label: "clone" },
    { load: OFFSET_ARGUMENT_0 },
    { test: "anyBit", value: CLONE_NEW_FLAGS, goTo: "denied" },
    { result: ALLOW },
    { label: "ioctl" },
    { load: OFFSET_ARGUMENT_1 },
    { test: "equal", value: TIOCSTI, goTo: "denied" },
    { test: "equal", value: TIOCLINUX, goTo: "denied" },
    { result: ALLOW },
    { label: "socket" },
    { load: OFFSET_ARGUMENT_0 },
    ...ALLOWED_FAMILIES.map((value): Step => ({ test: "equal", value, goTo: "allowed" })),
    { result: failWith(EAFNOSUPPORT) },
    { label: "allowed" },
    { result: ALLOW },
    { label: "denied" },
    { result: failWith(EPERM) },
    { label: "missing" },
    { result: failWith(ENOSYS) },
  ];
  return assemble(steps);
}
