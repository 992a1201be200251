-- forget_tokens removes the tokens of sessions that ended a while ago, and no others: each hand and each epoch leaves some,
-- and the end of a session refuses them all. The proxy's role itself may not remove a token.
CREATE FUNCTION proxy.forget_tokens() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM proxy.tokens t USING proxy.fences f
  WHERE f.session_id = t.session_id AND f.ended AND f.raised_at < now() - interval '1 h'
$$;
REVOKE ALL ON FUNCTION proxy.forget_tokens() FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT EXECUTE ON FUNCTION proxy.forget_tokens() TO ganglion_proxy;
  END IF;
END $$;
