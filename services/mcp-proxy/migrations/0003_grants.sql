-- What each role may do. Everything not named here is refused by Postgres itself (42501).
REVOKE ALL ON SCHEMA proxy FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA proxy FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA proxy FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT USAGE ON SCHEMA proxy TO ganglion_proxy;
    GRANT SELECT, INSERT, UPDATE ON proxy.vaults, proxy.replicas, proxy.calls TO ganglion_proxy;
    GRANT SELECT, INSERT, UPDATE, DELETE ON proxy.credentials TO ganglion_proxy;
    GRANT DELETE ON proxy.calls TO ganglion_proxy;
    -- Bindings and tokens are written once and never changed.
    GRANT SELECT, INSERT ON proxy.bindings, proxy.tokens TO ganglion_proxy;
    GRANT SELECT ON proxy.fences, proxy.audit_records, proxy.audit_head, proxy.open_requests TO ganglion_proxy;
    GRANT SELECT, UPDATE ON proxy.vault_tokens TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.raise_fence(text, bigint, boolean) TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.add_vault_token(text, text, text, text, text, bigint) TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.check_guard(jsonb) TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.write_records(jsonb) TO ganglion_proxy;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_session') THEN
    GRANT USAGE ON SCHEMA proxy TO ganglion_session;
    GRANT EXECUTE ON FUNCTION proxy.raise_fence(text, bigint, boolean) TO ganglion_session;
  END IF;
END $$;
