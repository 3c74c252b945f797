// How the search of the site orders its results: pages about tasks come first, then the rest of the manual, then what was measured and
// how fuseflow is developed, and pages of modules last. Each word of the query in a title counts. The other numbers are the defaults of Sphinx.
var FOLDERS = { "tutorials/": 30, "how-to/": 30, "measured/": -30, "develop/": -30, "modules/": -100 };
var QUERY = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/);
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const folder = Object.keys(FOLDERS).find((name) => page.startsWith(name));
    const words = title.toLowerCase().split(/\W+/);
    return score + (FOLDERS[folder] || 0) + QUERY.filter((word) => words.includes(word)).length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
