import type { GanglionSessionCreated, SessionUpdated } from "../../gen/ganglion/types/v1/event.ts";

/** What a session's settings are by its log. */
export interface FoldedSettings {
  title: string;
  metadata: Readonly<Record<string, string>>;
  agentJson: Uint8Array;
  budgetCents: bigint | null;
}

/** settingsOf begins the fold. */
export function settingsOf(created: GanglionSessionCreated): FoldedSettings {
  const { title, metadata, agentJson, budget } = created;
  return { title, metadata, agentJson, budgetCents: budget?.maxListCostCents ?? null };
}

/** updateSettings folds one session.updated in. */
export function updateSettings(settings: FoldedSettings, updated: SessionUpdated): FoldedSettings {
  return {
    title: updated.title ?? settings.title,
    metadata: updated.metadata?.entries ?? settings.metadata,
    agentJson: updated.agentJson.length > 0 ? updated.agentJson : settings.agentJson,
    budgetCents: updated.isBudgetRemoved ? null : (updated.budget?.maxListCostCents ?? settings.budgetCents),
  };
}
