-- What a session may cost and has cost, where it was forked from, and tools of its own.
ALTER TABLE session.sessions ADD COLUMN list_cost bigint;
-- The session is idle because its budget is used up: it takes no new input until the budget changes.
ALTER TABLE session.sessions ADD COLUMN is_budget_paused boolean NOT NULL DEFAULT false;
GRANT UPDATE (list_cost, is_budget_paused) ON session.sessions TO ganglion_session;

ALTER TABLE session.session_settings ADD COLUMN budget_cents bigint CHECK (budget_cents > 0);
ALTER TABLE session.session_settings ADD COLUMN forked_from text;
ALTER TABLE session.session_settings ADD COLUMN forked_at bigint NOT NULL DEFAULT 0;
GRANT UPDATE (agent_json, budget_cents) ON session.session_settings TO ganglion_session;
