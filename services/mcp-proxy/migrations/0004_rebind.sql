-- The session service may replace a session's MCP servers, and nothing else of its binding. The MAC goes with them, so a row
-- that anybody else changes is still found out.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT UPDATE (mcp_servers, mac) ON proxy.bindings TO ganglion_proxy;
  END IF;
END $$;
