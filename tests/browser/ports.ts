// Where the tests' pages are served; TEST_PORT moves both, for two checkouts on one machine.
const port = Number(process.env.TEST_PORT ?? 5320);

export const PAGE = `http://localhost:${port}`;
export const HARNESS = `http://localhost:${port + 1}`;
