// Pages of runs in the page of a sweep: each is packed without the style and the scripts, which it shares with this page, and opens in a
// tab of its own.

const SHARED = { style: "style", libraries: "script", script: "script" };

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const page = await new Response(stream).text();
  return Object.entries(SHARED).reduce((whole, [id, tag]) => whole.replace(
    `<${tag} id="${id}"></${tag}>`, () => `<${tag} id="${id}">${document.getElementById(id).textContent}</${tag}>`), page);
}

/** Let the links of a point open and save the page of its run. */
async function openRun(view) {
  const packed = view.querySelector("script.packed");
  if (!packed) return;
  packed.remove();
  const url = URL.createObjectURL(new Blob([await unpacked(packed.textContent)], { type: "text/html" }));
  for (const link of view.querySelectorAll("a.run")) link.href = url;
}
