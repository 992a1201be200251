import type { GanglionSessionCreated, SessionUpdated } from "../../gen/ganglion/types/v1/event.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";

/** What a session's settings are by its log. */
export interface FoldedSettings {
  title: string;
  metadata: Readonly<Record<string, string>>;
  agentJson: Uint8Array;
  environmentJson: Uint8Array;
  repositories: readonly Repository[];
  budgetCents: bigint | null;
}

/** settingsOf begins the fold. */
export function settingsOf(created: GanglionSessionCreated): FoldedSettings {
  const { title, metadata, agentJson, environmentJson, repositories, budget } = created;
  const budgetCents = budget?.maxListCostCents ?? null;
  return { title, metadata, agentJson, environmentJson, repositories, budgetCents };
}

/** updateSettings folds one session.updated in. */
export function updateSettings(settings: FoldedSettings, updated: SessionUpdated): FoldedSettings {
  return {
    ...settings,
    title: updated.title ?? settings.title,
    metadata: updated.metadata?.entries ?? settings.metadata,
    agentJson: updated.agentJson.length > 0 ? updated.agentJson : settings.agentJson,
    budgetCents: updated.isBudgetRemoved ? null : (updated.budget?.maxListCostCents ?? settings.budgetCents),
  };
}
