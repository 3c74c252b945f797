// The address says which thing is chosen: the key of the thing, behind the # of the address bar. The page of a run that stands in the page
// of a sweep has no address bar: it tells its address to the page around it, which has it behind its own, after a "!".

const inside = window !== window.parent && location.protocol === "about:";
let told = "";

/** Return the address of this page, without what stands after "!". */
function address() { return (inside ? told : location.hash.slice(1)).split("!")[0]; }

/** Return the address of the page that stands in this one. */
function innerAddress() { return location.hash.slice(1).split("!")[1] ?? ""; }

function goToAddress(key) {
  if (!inside) { location.hash = "#" + key; return; }
  told = key;
  follow();
  window.parent.postMessage({ address: key }, "*");
}

function followInside() {
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#']");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    goToAddress(link.getAttribute("href").slice(1));
  });
  window.addEventListener("message", event => {
    if (event.source !== window.parent || typeof event.data?.address !== "string" || event.data.address === told) return;
    told = event.data.address;
    follow();
  });
}

if (inside) followInside(); else window.addEventListener("hashchange", () => follow());
