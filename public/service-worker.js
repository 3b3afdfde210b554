// Keeps the last page that worked for a moment without a network. Own origin only; hashed files are kept, the
// page itself is asked for first.
const KEEP = "oom-ledger-1";

self.addEventListener("install", (event) => event.waitUntil(keepPage().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== self.location.origin) return;
  event.respondWith(answer(request));
});

// The page and every file it names: the visit that brings this worker here is not seen by it.
async function keepPage() {
  const kept = await caches.open(KEEP);
  const page = await fetch("./");
  if (!page.ok) return;
  const named = [...(await page.clone().text()).matchAll(/\s(?:src|href)=["']?([^"'\s>]+)/g)].map((m) => m[1]);
  await kept.put(new URL("./", self.location), page);
  await Promise.allSettled([...new Set(named)].map((name) => kept.add(new URL(name, self.location))));
}

async function answer(request) {
  const kept = await caches.open(KEEP);
  const hashed = /-[0-9a-f]{16}[._]/.test(new URL(request.url).pathname);
  if (hashed) {
    const found = await kept.match(request);
    if (found) return found;
  }
  try {
    const fresh = await fetch(request);
    if (fresh.ok) {
      if (request.mode === "navigate") await forget(kept);
      await kept.put(request, fresh.clone());
    }
    return fresh;
  } catch (error) {
    const found = await kept.match(request, { ignoreSearch: true });
    if (found) return found;
    throw error;
  }
}

// Files of earlier builds go when a new page has been fetched; more than a few builds are never kept.
async function forget(kept) {
  const keys = await kept.keys();
  if (keys.length > 40) await Promise.all(keys.slice(0, keys.length - 40).map((key) => kept.delete(key)));
}
