-- What hands of a session get work trees of, each a ganglion.types.v1.Repository, and the vault of its own that holds
-- their tokens. No token is ever in here.
ALTER TABLE session.session_settings ADD COLUMN repositories bytea[] NOT NULL DEFAULT '{}';
ALTER TABLE session.session_settings ADD COLUMN own_vault_id text NOT NULL DEFAULT '';
