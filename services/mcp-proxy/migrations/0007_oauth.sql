-- OAuth: renewals under way and authorizations that a person has not finished. What is secret of them is sealed with a key
-- that is derived from one at Vault and bound to its row; the database never has it.

-- A renewal of a credential's tokens: at most one at a time, over all replicas. The row stands before the request leaves
-- and goes with the new version, so a refresh token that is spent once is never used by two.
CREATE TABLE proxy.oauth_renewals (
  credential_id text PRIMARY KEY REFERENCES proxy.credentials ON DELETE CASCADE,
  -- The audited request of whoever renews: new with each claim, so whoever held it before can no longer write.
  request_id    text NOT NULL,
  instance      text NOT NULL,
  boot_id       text NOT NULL,
  -- Version of the secret whose refresh token is used.
  from_version  bigint NOT NULL,
  -- What the authorization server answered, sealed, from the moment it is known until Vault has it.
  answer        bytea,
  started_at    timestamptz NOT NULL DEFAULT now()
);

-- An authorization that was begun: everything needed to redeem its code, sealed, by the hash of its `state`.
CREATE TABLE proxy.oauth_authorizations (
  state_hash bytea PRIMARY KEY,
  vault_id   text NOT NULL REFERENCES proxy.vaults ON DELETE CASCADE,
  pending    bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX oauth_authorizations_age ON proxy.oauth_authorizations (created_at);

-- Archiving a credential removes its secrets, also those that are on their way to Vault.
CREATE FUNCTION proxy.drop_oauth_renewal() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  DELETE FROM proxy.oauth_renewals AS r WHERE r.credential_id = NEW.credential_id;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION proxy.drop_oauth_renewal() FROM PUBLIC;
CREATE TRIGGER credentials_archived AFTER UPDATE OF archived_at ON proxy.credentials
  FOR EACH ROW WHEN (NEW.archived_at IS NOT NULL) EXECUTE FUNCTION proxy.drop_oauth_renewal();

-- Claims the renewal of a credential that still has version p_from: 'claimed', with the record as it is; 'claimed' too, with the sealed answer, when
-- whoever renewed it before died (or gave up) with the answer in hand; 'busy' while another renews; 'moved' when it has
-- another version by now (null: it has gone). The lock on the credential's row puts claims in one order with what ends them.
CREATE FUNCTION proxy.claim_oauth_renewal(
  p_credential_id text, p_from bigint, p_request_id text, p_instance text, p_boot_id text,
  OUT state text, OUT version bigint, OUT config jsonb, OUT mac bytea, OUT answer bytea
) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  v_row proxy.oauth_renewals%ROWTYPE;
BEGIN
  state := 'moved';
  SELECT c.version, c.config, c.mac INTO version, config, mac FROM proxy.credentials AS c
  WHERE c.credential_id = p_credential_id AND c.archived_at IS NULL FOR NO KEY UPDATE;
  IF version IS DISTINCT FROM p_from THEN RETURN; END IF;
  state := 'claimed';
  SELECT r.* INTO v_row FROM proxy.oauth_renewals AS r WHERE r.credential_id = p_credential_id;
  IF NOT FOUND THEN
    INSERT INTO proxy.oauth_renewals (credential_id, request_id, instance, boot_id, from_version)
    VALUES (p_credential_id, p_request_id, p_instance, p_boot_id, p_from);
    RETURN;
  END IF;
  -- A process renews a credential once at a time: a row of its own is one that it has given up. No renewal takes two minutes.
  IF v_row.boot_id <> p_boot_id AND v_row.started_at > now() - interval '2 min' AND EXISTS (
    SELECT FROM proxy.replicas AS p WHERE p.instance = v_row.instance AND p.boot_id = v_row.boot_id
      AND p.heartbeat_at > now() - interval '15 s')
  THEN
    state := 'busy';
    RETURN;
  END IF;
  UPDATE proxy.oauth_renewals AS r
  SET request_id = p_request_id, instance = p_instance, boot_id = p_boot_id, from_version = p_from, started_at = now(),
      answer = CASE WHEN r.from_version = p_from THEN r.answer END
  WHERE r.credential_id = p_credential_id;
  answer := CASE WHEN v_row.from_version = p_from THEN v_row.answer END;
END $$;
REVOKE ALL ON FUNCTION proxy.claim_oauth_renewal(text, bigint, text, text, text) FROM PUBLIC;

-- Ends a renewal: the new version counts and the claim is gone, in one transaction. The part of the record that its MAC
-- covers is replaced unless somebody changed it meanwhile. False: the credential was archived or deleted.
CREATE FUNCTION proxy.end_oauth_renewal(
  p_credential_id text, p_version bigint, p_config jsonb, p_mac bytea, p_mac_before bytea
) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  UPDATE proxy.credentials AS c
  SET version = GREATEST(c.version, p_version), updated_at = now(),
      config = CASE WHEN c.mac = p_mac_before THEN p_config ELSE c.config END,
      mac = CASE WHEN c.mac = p_mac_before THEN p_mac ELSE c.mac END
  WHERE c.credential_id = p_credential_id AND c.archived_at IS NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  DELETE FROM proxy.oauth_renewals AS r WHERE r.credential_id = p_credential_id AND r.from_version < p_version;
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION proxy.end_oauth_renewal(text, bigint, jsonb, bytea, bytea) FROM PUBLIC;

REVOKE ALL ON proxy.oauth_renewals, proxy.oauth_authorizations FROM PUBLIC;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON proxy.oauth_renewals TO ganglion_proxy;
    GRANT SELECT, INSERT, DELETE ON proxy.oauth_authorizations TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.claim_oauth_renewal(text, bigint, text, text, text) TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.end_oauth_renewal(text, bigint, jsonb, bytea, bytea) TO ganglion_proxy;
  END IF;
END $$;
