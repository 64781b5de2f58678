/** Keeps the page for times without a network, where the browser can. */
export async function keepOffline(): Promise<void> {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register("./service-worker.js");
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) =>
      navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }),
    );
  }
  // What came before the worker was there is asked for once more, from the browser's own cache, so that the worker keeps it.
  const here = new URL(".", location.href).href;
  const fetched = performance.getEntriesByType("resource").map(({ name }) => name);
  await Promise.all(fetched.filter((url) => url.startsWith(here)).map((url) => fetch(url)));
}
