// Pages of runs inside the page of a sweep: each is packed, and opened when its point is shown for the first time.

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** Open the run of a point in its frame, at the address that stands behind the point's, and let a link save its page. */
async function openRun(view) {
  const frame = view.querySelector("iframe.run"), packed = view.querySelector("script.packed");
  if (!frame) return;
  const tell = () => frame.contentWindow.postMessage({ address: frame.dataset.address }, "*");
  const moved = frame.dataset.address !== innerAddress();
  frame.dataset.address = innerAddress();
  if (!packed) { if (moved) tell(); return; }
  packed.remove();
  const page = await unpacked(packed.textContent);
  frame.onload = tell;
  frame.srcdoc = page;
  view.querySelector("a.save").href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
}

window.addEventListener("message", event => {
  const frame = views.find(view => view.dataset.view === shownView).querySelector("iframe.run");
  if (typeof event.data?.address !== "string" || event.source !== frame?.contentWindow) return;
  frame.dataset.address = event.data.address;
  goToAddress(`${things[Number(shownView)].key}!${event.data.address}`);
});
