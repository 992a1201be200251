/** Points that no canonical session comes by, or not each time, and why. */
export interface Unreached {
  /** A point, or a beginning with "*" behind it, or in the middle for one part of it. */
  readonly points: string;
  readonly why: string;
  /** Some runs come by: then they die there too, and the run says how many did. */
  readonly isByChance?: true;
  /** The session that surely comes by, where others do so by chance. */
  readonly surelyIn?: string;
}

const NOBODY = "asked by operators and probers: nothing of a session";
const VAULTS = "credentials are written by people, before a session";
const REGISTRY =
  "agents, environments and keys are made, and a session's servers changed, outside of its turns";
const DRAIN = "only while a service stops in good order";
const LATER = "needs minutes, days or megabytes; test/contract has them with a clock or limits of their own";
const REPLICAS = "needs a second replica of the same service; test/chaos/session-replicas.test.ts has two";
const OAUTH =
  "the sessions' credentials are no OAuth tokens; test/contract/mcp-proxy/oauth-crash.test.ts dies at these";
const LARGE = "needs a result of megabytes; test/contract/harness has one";
const FAULT = "a hand that cannot be cleaned up; test/contract/sandbox has one";
const OUTSIDE =
  "no command of these sessions goes out; who dies there ends a connection, and test/contract/sandbox has a token that is lost";
const OTHER =
  "needs another process that is taken to run the call: a second replica, or one that died a moment ago";
const RACE = "which way two processes meet is chance";
const LOST = "a host is asked again when its answer, or the brain that asked, was lost";
const LONG = "is asked for calls that take long, which others are when the machine is slow";
const LOOK = "is done every few seconds while a session is busy: most are over before";

const KEPT = "a call takes one commit less while its credential is kept, which is for five seconds";
const FENCED = "only for a session that ends, or is taken over, while its credential is being read";
const START = "the log comes with its lease; only what is longer, or was lost on the way, is asked for";
const PINNED = "a server's tools are pinned once, by the first session that lists them";
const TIMER = "comes with a start, a timer or the ends of sessions, whatever a session does meanwhile";
const ALONE =
  "hints go out while another replica may listen, which for one that is alone is a while after its start";
const UNSETTLED = "a request whose record could not be written in time is closed later";

/** The list: whatever is neither reached nor here fails, and so does what is here and reached. */
export const UNREACHED: readonly Unreached[] = [
  { points: "*.serve.Health.*", why: NOBODY },
  { points: "harness.serve.HarnessService.*", why: NOBODY },
  { points: "mcp-proxy.serve.AuditService.*", why: NOBODY },
  { points: "mcp-proxy.pg.list_records*", why: NOBODY },
  { points: "mcp-proxy.pg.audit_session_end.*", why: NOBODY },
  { points: "mcp-proxy.pg.audit_open_requests.*", why: UNSETTLED, isByChance: true },
  { points: "mcp-proxy.pg.free_call_keys.*", why: UNSETTLED, isByChance: true },
  { points: "mcp-proxy.pg.audit_*", why: TIMER, isByChance: true },
  { points: "sandbox.serve.SandboxService.ListHands.*", why: NOBODY },
  { points: "sandbox.serve.SandboxService.Terminate.*", why: NOBODY },
  { points: "session.pg.ping.*", why: NOBODY },
  { points: "session.pg.hint.*", why: ALONE, isByChance: true },
  { points: "session.pg.session_list_*", why: NOBODY },
  { points: "session.serve.SessionService.ListSessions.*", why: NOBODY },
  { points: "session.pg.read_desc.*", why: NOBODY },
  { points: "session.pg.read_position.*", why: NOBODY },
  { points: "session.pg.lease_take_named.*", why: NOBODY },
  { points: "mcp-proxy.serve.BindingService.EndBinding.*", why: NOBODY },
  { points: "mcp-proxy.pg.raise_fence.*", why: NOBODY },
  { points: "mcp-proxy.serve.VaultService.*", why: VAULTS },
  { points: "mcp-proxy.pg.*_credential.*", why: VAULTS },
  { points: "mcp-proxy.pg.is_key_taken.*", why: VAULTS },
  { points: "mcp-proxy.pg.archive_credentials.*", why: VAULTS },
  { points: "mcp-proxy.pg.list_credentials.*", why: VAULTS },
  { points: "mcp-proxy.pg.mark_secret_removed.*", why: VAULTS },
  { points: "mcp-proxy.pg.insert_vault.*", why: VAULTS },
  { points: "mcp-proxy.pg.find_made_vault.*", why: VAULTS },
  { points: "mcp-proxy.pg.list_vaults.*", why: VAULTS },
  { points: "mcp-proxy.pg.update_vault.*", why: VAULTS },
  { points: "mcp-proxy.pg.archive_vault.*", why: VAULTS },
  { points: "mcp-proxy.pg.mark_*_deleted.*", why: VAULTS },
  { points: "mcp-proxy.vault.remove.*", why: VAULTS },
  { points: "mcp-proxy.vault.patch.*", why: VAULTS },
  { points: "mcp-proxy.pg.list_unpurged_credentials.*", why: TIMER, isByChance: true },
  { points: "mcp-proxy.pg.drop_deleted_vaults.*", why: TIMER, isByChance: true },
  { points: "mcp-proxy.pg.approve_tool_pin.*", why: NOBODY },
  { points: "mcp-proxy.pg.list_tool_pins.*", why: NOBODY },
  { points: "mcp-proxy.serve.ToolPinService.*", why: NOBODY },
  { points: "session.serve.AgentService.*", why: REGISTRY },
  { points: "session.serve.EnvironmentService.*", why: REGISTRY },
  { points: "session.serve.ApiKeyService.*", why: REGISTRY },
  { points: "session.pg.key_*", why: REGISTRY },
  { points: "session.pg.agent_archive.*", why: REGISTRY },
  { points: "session.pg.agent_get_locked.*", why: REGISTRY },
  { points: "session.pg.agent_insert.*", why: REGISTRY },
  { points: "session.pg.agent_insert_version.*", why: REGISTRY },
  { points: "session.pg.agent_list.*", why: REGISTRY },
  { points: "session.pg.agent_list_versions.*", why: REGISTRY },
  { points: "session.pg.agent_lock.*", why: REGISTRY },
  { points: "session.pg.agent_set_version.*", why: REGISTRY },
  { points: "session.pg.environment_archive.*", why: REGISTRY },
  { points: "session.pg.environment_delete.*", why: REGISTRY },
  { points: "session.pg.environment_get_locked.*", why: REGISTRY },
  { points: "session.pg.environment_insert.*", why: REGISTRY },
  { points: "session.pg.environment_list.*", why: REGISTRY },
  { points: "session.pg.environment_update.*", why: REGISTRY },
  { points: "mcp-proxy.pg.replace_binding_servers.*", why: REGISTRY },
  { points: "mcp-proxy.pg.queue_own.*", why: DRAIN },
  { points: "mcp-proxy.pg.forget_ended_calls.*", why: LATER },
  { points: "mcp-proxy.pg.forget_tokens.*", why: LATER },
  { points: "session.pg.payload_remove_old.*", why: LATER },
  { points: "sandbox.hand.receive.pong", why: LATER },
  { points: "sandbox.journal.replace.*", why: LATER },
  { points: "*.SessionService.SubscribePreviews*", why: REPLICAS },
  { points: "mcp-proxy.pg.ask_to_cancel.*", why: OTHER, isByChance: true },
  { points: "mcp-proxy.pg.oauth_*", why: OAUTH },
  { points: "mcp-proxy.oauth.*", why: OAUTH },
  { points: "harness.*.McpProxyService.ReadCall", why: LARGE },
  { points: "mcp-proxy.serve.McpProxyService.ReadCall.*", why: LARGE },
  { points: "harness.*.SessionService.PutPayload", why: LARGE },
  { points: "session.pg.payload_discard.*", why: LARGE },
  { points: "sandbox.hand.receive.unclean", why: FAULT },
  { points: "sandbox.*.BindingService.IssueToken", why: OUTSIDE },
  { points: "session.pg.append_many.*", why: RACE, surelyIn: "many at once" },
  { points: "session.pg.append_state.*", why: RACE, surelyIn: "many at once" },
  { points: "session.pg.append_stored.*", why: RACE, surelyIn: "many at once" },
  { points: "session.pg.lease_free.*", why: RACE, surelyIn: "recovery" },
  { points: "session.pg.checkpoint_state.*", why: RACE, isByChance: true },
  { points: "*.SessionService.GetCheckpoint*", why: START, isByChance: true },
  { points: "harness.send.SessionService.GetEvents", why: START, isByChance: true },
  { points: "harness.receive.SessionService.GetEvents", why: START, isByChance: true },
  { points: "mcp-proxy.pg.pin_tools.*", why: PINNED, isByChance: true },
  { points: "mcp-proxy.pg.has_open_fence.*", why: FENCED, isByChance: true },
  { points: "mcp-proxy.pg.take_over_call.*", why: RACE, isByChance: true },
  { points: "mcp-proxy.pg.write_and_claim.*", why: KEPT, surelyIn: "slow tool" },
  { points: "mcp-proxy.pg.write_dispatch.*", why: KEPT, surelyIn: "slow tool" },
  { points: "mcp-proxy.pg.write_claim_and_dispatch.*", why: KEPT, isByChance: true },
  { points: "mcp-proxy.pg.find_fences.*", why: LOOK, surelyIn: "slow tool" },
  { points: "session.pg.read_heads.*", why: LOOK, surelyIn: "slow tool" },
  { points: "*.McpProxyService.WatchCall*", why: LONG, surelyIn: "slow tool" },
  { points: "*.McpProxyService.GetCall*", why: LOST, surelyIn: "interrupt" },
  { points: "mcp-proxy.pg.find_call.*", why: LOST, surelyIn: "interrupt" },
  { points: "*.SandboxService.GetExecution*", why: LOST, surelyIn: "interrupt" },
  { points: "*.McpProxyService.CancelCall*", why: LOST, surelyIn: "interrupt" },
];

/** Whether an entry means a point. */
export function matches({ points }: Unreached, point: string): boolean {
  const parts = points.split("*").map((part) => part.replaceAll(".", "\\."));
  return new RegExp(`^${parts.join(".*")}$`).test(point);
}
